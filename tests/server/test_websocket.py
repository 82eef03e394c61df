"""Who comes in over a WebSocket: no foreign page, nobody without the key, no more than there are seats."""

from __future__ import annotations

import httpx2
import pytest
import websocket

from kokoro_lab.server.state import SOCKETS
from tests.server.conftest import ALLOWED_ORIGIN, RunningServer, running, wait_until
from tests.server.test_websocket_conversation import PLENTY, talking


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 400),
        ({"origin": ALLOWED_ORIGIN}, 101),
    ],
)
def test_foreign_pages_and_hosts_are_turned_away_at_the_door(
    server: RunningServer, headers: dict[str, str], status: int
) -> None:
    address = f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws"
    if status == 101:
        websocket.create_connection(address, timeout=30, **headers).close()
        return
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(address, timeout=30, **headers)
    assert refused.value.status_code == status


@pytest.mark.test_all
def test_a_key_is_asked_for_where_one_is_set(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKORO_API_KEY", "sesame")
    with running(tmp_path_factory.mktemp("keyed")) as server:
        with pytest.raises(websocket.WebSocketBadStatusException) as refused, talking(server):
            pass
        assert refused.value.status_code == 401
        with talking(server, header={"Authorization": "Bearer sesame"}) as talk:
            talk.say("speak", input="Hello.", credit=PLENTY)
            talk.until("done")


def test_more_connections_than_there_are_seats_are_told_to_come_back(server: RunningServer) -> None:
    address = f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws"
    opened = [websocket.create_connection(address, timeout=30, suppress_origin=True) for _ in range(SOCKETS)]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(address, timeout=30, suppress_origin=True)
    assert refused.value.status_code == 429
    assert httpx2.get(f"{server.url}/health").status_code == 200
    for connection in opened:
        connection.close()

    def served() -> bool:
        try:
            with talking(server) as talk:
                talk.say("speak", input="Hello.", credit=PLENTY)
                return talk.until("done")["type"] == "done"
        except websocket.WebSocketBadStatusException:
            return False

    wait_until(served)
