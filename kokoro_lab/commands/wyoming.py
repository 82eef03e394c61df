"""`wyoming`: serves the engine to Home Assistant by the Wyoming protocol."""

from __future__ import annotations

import click

from kokoro_lab.commands.options import host_option, port_option, variant_option


@click.command()
@host_option
@port_option("wyoming_port", "10200")
@variant_option
def wyoming(host: str, port: int, variant: str | None) -> None:
    """Serve speech to Home Assistant by the Wyoming protocol, also while a text is still being written."""
    from kokoro_lab.serve import main as serve_main

    serve_main(host=host, port=port, variant=variant, wyoming=True)
