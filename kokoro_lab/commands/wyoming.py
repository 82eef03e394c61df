"""`wyoming`: the engine behind the protocol of Home Assistant."""

from __future__ import annotations

import click

from kokoro_lab.commands.options import host_option, variant_option
from kokoro_lab.config import settings


@click.command()
@host_option
@click.option(
    "--port",
    type=int,
    default=lambda: settings().wyoming_port,
    show_default="10200",
    help="Port to listen on.",
)
@variant_option
def wyoming(host: str, port: int, variant: str | None) -> None:
    """Speak to Home Assistant by the Wyoming protocol, while the text is written."""
    from kokoro_lab.serve import main as serve_main

    serve_main(host=host, port=port, variant=variant, wyoming=True)
