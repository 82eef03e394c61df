"""`serve`: the engine behind HTTP and WebSocket."""

from __future__ import annotations

import click

from kokoro_lab.commands.options import host_option, variant_option
from kokoro_lab.config import settings


@click.command()
@host_option
@click.option(
    "--port", type=int, default=lambda: settings().port, show_default="8880", help="Port to listen on."
)
@variant_option
def serve(host: str, port: int, variant: str | None) -> None:
    """Serve speech to Raycast, OpenWebUI and every OpenAI client."""
    from kokoro_lab.serve import main as serve_main

    serve_main(host=host, port=port, variant=variant)
