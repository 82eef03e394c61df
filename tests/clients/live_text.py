"""What vendors' own clients hear of a server, as JSON. Run in the environment of python.txt:

`python live_text.py <client> <address> <key> <fragments of the text, as JSON>`
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).parents[2] / "docs/clients.md"


def elevenlabs(address: str, key: str, fragments: list[str]) -> dict[str, Any]:
    """ElevenLabs' SDK. It asks for TLS whatever its `base_url` says, so its address is put right here."""
    from elevenlabs import VoiceSettings
    from elevenlabs.client import ElevenLabs
    from elevenlabs.core.api_error import ApiError

    speech = ElevenLabs(api_key=key, base_url=address).text_to_speech
    speech._ws_base_url = address.replace("http://", "ws://")
    voice = "hum" if fragments else "21m00Tcm4TlvDq8ikWAM"
    try:
        heard = speech.convert_realtime(
            voice,
            text=iter(fragments or ["Hello."]),
            model_id="eleven_flash_v2_5",
            output_format="pcm_24000",
            voice_settings=VoiceSettings(speed=1.25, stability=0.5),
        )
        return {"audio": b"".join(heard)}
    except ApiError as error:
        return {"status": error.status_code, "error": error.body}


async def livekit(address: str, key: str, fragments: list[str]) -> dict[str, Any]:
    """LiveKit's plugin for ElevenLabs, made as docs/clients.md shows it. It speaks with contexts: two texts
    over one connection."""
    import aiohttp
    from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT

    shown = re.findall(r"^```python\n(.*?)^```$", CLIENTS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (program,) = [block for block in shown if "elevenlabs.TTS(" in block]
    program = program.replace("http://127.0.0.1:8880", address).replace("af_heart", "hum")
    program = program.replace('"unused"', repr(key)).replace("\n)", ", http_session=session\n)")
    said, words = [], []
    async with aiohttp.ClientSession() as session:
        names: dict[str, Any] = {"session": session}  # which LiveKit's own agents bring
        exec(program, names)
        speech = names["speech"]
        for _ in range(2):
            stream, audio = speech.stream(), b""
            for fragment in fragments:
                stream.push_text(fragment)
            stream.end_input()
            async for event in stream:
                audio += event.frame.data.tobytes()
                words += event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
            await stream.aclose()
            said.append(base64.b64encode(audio).decode())
        await speech.aclose()
    return {"said": said, "words": [[str(word), word.start_time, word.end_time] for word in words]}


async def mistral(address: str, key: str, fragments: list[str]) -> dict[str, Any]:
    """Mistral's SDK."""
    from mistralai.client import Mistral
    from mistralai.client.models import SpeechStreamAudioDelta, SpeechStreamDone
    from mistralai.extra.realtime.speech import RealtimeSpeech, audio_bytes

    async def written() -> AsyncIterator[str]:
        for fragment in fragments:
            yield fragment

    client = Mistral(api_key=key, server_url=address)
    speech = RealtimeSpeech(client.sdk_configuration)
    heard: dict[str, Any] = {"audio": b""}
    async for event in speech.speak_stream(
        written(), "voxtral-mini-tts-3", voice_id="hum", response_format="pcm"
    ):
        if isinstance(event, SpeechStreamAudioDelta):
            heard["audio"] += audio_bytes(event)
        elif isinstance(event, SpeechStreamDone):
            heard["usage"] = event.usage.model_dump()
    return heard


def main(client: str, address: str, key: str, fragments: str) -> None:
    found = {"elevenlabs": elevenlabs, "livekit": livekit, "mistral": mistral}[client]
    heard: Any = found(address, key, json.loads(fragments))
    if asyncio.iscoroutine(heard):
        heard = asyncio.run(heard)
    print(json.dumps(heard, default=lambda data: base64.b64encode(data).decode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
