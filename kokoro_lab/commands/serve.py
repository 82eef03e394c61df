"""`serve`: the engine behind HTTP and WebSocket."""

from __future__ import annotations

import click

from kokoro_lab.commands.options import host_option, port_option, variant_option


@click.command()
@host_option
@port_option("port", "8880")
@variant_option
def serve(host: str, port: int, variant: str | None) -> None:
    """Serve speech to Raycast, OpenWebUI and every OpenAI client."""
    from kokoro_lab.serve import main as serve_main

    serve_main(host=host, port=port, variant=variant)
