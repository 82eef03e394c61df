"""`kokoro-lab speak --dither`, as users call it."""

from __future__ import annotations

from tests.installed.command import Installed

TEXT = "The kettle is on."


def test_a_file_is_written_with_the_noise_that_is_asked_for(installed: Installed) -> None:
    for kind in ("tpdf", "shaped"):
        done = installed.run("speak", TEXT, "-o", f"{kind}.wav", "--dither", kind)
        assert done.returncode == 0, done.stderr
    white, shaped = ((installed.folder / f"{kind}.wav").read_bytes() for kind in ("tpdf", "shaped"))
    assert len(white) == len(shaped)
    assert white != shaped
    wrong = installed.run("speak", TEXT, "--dither", "pink")
    assert wrong.returncode == 2
    assert "'tpdf', 'shaped'" in wrong.stderr


def test_a_seed_below_0_is_refused_and_no_traceback(installed: Installed) -> None:
    done = installed.run("speak", TEXT, "--seed", "-1")
    assert done.returncode == 2
    assert "--seed" in done.stderr
