#!/usr/bin/env bash
# Goes with speak-selection.sh, which see.

# @raycast.schemaVersion 1
# @raycast.title Stop Speaking
# @raycast.mode silent
# @raycast.packageName kokoro-lab
# @raycast.icon 🔇
# @raycast.description Ends what Speak Selection began.

set -uo pipefail
folder="${TMPDIR:-/tmp}/kokoro-lab-$(id -u)"

group="$(cat "$folder/group" 2>/dev/null)"
rm -f "$folder/group"
case "$group" in
  "" | *[!0-9]*)
    echo "Nothing is being spoken"
    exit 0
    ;;
esac
# The number may be another program's by now
case "$(ps -p "$group" -o command= 2>/dev/null)" in
  *speak-selection*)
    kill -TERM -- "-$group"
    echo "Stopped"
    ;;
  *) echo "Nothing is being spoken" ;;
esac
