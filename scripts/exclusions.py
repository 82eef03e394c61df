"""Measure again what each entry of `kokoro_lab/graphs/exclusions.json` buys and costs (about 15 minutes)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kokoro_lab.graphs import recipes
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.lab.tuning.precision import costs

VOICES = ("af_heart", "am_michael", "bf_emma")
TEXTS = 4

if __name__ == "__main__":
    target = Path(recipes.__file__).with_name("exclusions.json")
    lines = [text.text for text in load_texts(limit=TEXTS)]
    measured = {
        variant: json.loads(costs(variant, lines, VOICES).to_json(orient="records"))
        for variant in recipes.exclusions()
    }
    target.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    sys.stdout.write(target.read_text("utf-8"))
