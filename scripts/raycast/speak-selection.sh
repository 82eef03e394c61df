#!/usr/bin/env bash
# Copy this file and stop.sh into a folder of your own, make both executable (chmod +x), add the folder in
# Raycast under Settings → Extensions → Script Commands, and give each a hotkey.

# @raycast.schemaVersion 1
# @raycast.title Speak Selection
# @raycast.mode silent
# @raycast.packageName kokoro-lab
# @raycast.icon 🔊
# @raycast.description Speaks the selected text, or the clipboard where nothing is selected. Again: starts anew.

# ------------------------------------------------------------------------------------- yours to change
url="${KOKORO_URL:-http://127.0.0.1:8880}"
voice="${KOKORO_VOICE:-}" # empty: the server's own; else such as af_heart
speed="${KOKORO_SPEED:-1}"
key="${KOKORO_API_KEY:-}" # only where the server wants one
# ----------------------------------------------------------------------------------------------------

set -uo pipefail
# Raycast's own PATH knows nothing of Homebrew
PATH="$PATH:/opt/homebrew/bin:/usr/local/bin"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="${TMPDIR:-/tmp}/kokoro-lab-$(id -u)"

# Raycast shows the last line of the output, and a non-zero exit as a failure
fail() {
  echo "$1"
  exit 1
}

selection() {
  osascript 2>/dev/null <<'APPLESCRIPT'
tell application "System Events"
  set front to first process whose frontmost is true
  get value of attribute "AXSelectedText" of (value of attribute "AXFocusedUIElement" of front)
end tell
APPLESCRIPT
}

# Standard input as a JSON string, without a program that a Mac may lack. Control characters become spaces.
json_string() {
  local tab=$'\t' return=$'\r'
  export LC_ALL=C
  printf '"'
  sed -e "s/$return\$//" | tr '\r' '\n' | tr '\000-\010\013\014\016-\037\177' ' ' \
    | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/$tab/\\\\t/g" \
    | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
  printf '"'
}

request() {
  printf '{"model": "kokoro", "response_format": "wav", "speed": %s' "$speed"
  [ -z "$voice" ] || printf ', "voice": %s' "$(printf '%s' "$voice" | json_string)"
  printf ', "input": '
  printf '%s' "$text" | json_string
  printf '}'
}

# The head of the answer comes first, so that an error is read and not played
ask() {
  request | curl --silent --show-error --no-buffer --include --http1.1 --connect-timeout 3 --noproxy 127.0.0.1,localhost \
    --header 'Content-Type: application/json' --header 'Expect:' \
    --header @<([ -z "$key" ] || printf 'Authorization: Bearer %s\n' "$key") \
    --data-binary @- "$url/v1/audio/speech" 2>"$folder/curl"
}

# Reads an answer, plays it, and says in one line, to the file that is given, whether it begins or what is wrong.
play_answer() {
  local status line
  read -r _ status _ || status=""
  while read -r line && [ "${line%$'\r'}" != "" ]; do :; done
  case "$status" in
    200)
      echo ok >"$1"
      make_sound
      ;;
    "") echo "The server cannot be reached at $url; start it with: kokoro-lab serve" >"$1" ;;
    *) message "$status" >"$1" ;;
  esac
}

# What an error says, out of {"error": {"message": "..."}}
message() {
  local body
  body="$(tr '\n' ' ')"
  case "$body" in
    *'"message":'*)
      printf '%s\n' "$body" | sed -e 's/.*"message": *"//' -e 's/\([^\\]\)" *[,}].*/\1/' -e 's/\\"/"/g'
      ;;
    *) echo "The server answered $1." ;;
  esac
}

make_sound() {
  case "$player" in
    play) play -q --ignore-length -t wav - 2>/dev/null ;;
    ffplay) ffplay -nodisp -autoexit -loglevel quiet -i - ;;
    afplay) cat >"$folder/speech.wav" && afplay "$folder/speech.wav" ;;
  esac
}

player=""
for program in play ffplay afplay; do
  command -v "$program" >/dev/null && player="$program" && break
done
[ -n "$player" ] || fail "No player was found; install one: brew install sox"
command -v curl >/dev/null || fail "curl was not found."
[ -x "$here/stop.sh" ] || fail "stop.sh is not beside this script; copy it too, and make it executable."

source_name="the selection"
text="$(selection)"
if [ -z "${text//[[:space:]]/}" ]; then
  # Some programs do not tell what is selected; there, copying comes first
  source_name="the clipboard (no selection was found)"
  text="$(LC_ALL=en_US.UTF-8 pbpaste)"
fi
[ -n "${text//[[:space:]]/}" ] || fail "There is no selection, and the clipboard holds no text."

"$here/stop.sh" >/dev/null # a second press begins anew
{ mkdir -p "$folder" && chmod 700 "$folder"; } || fail "$folder cannot be used."
rm -f "$folder/said"
mkfifo -m 600 "$folder/said"

set -m # the background gets a process group of its own, by which stop.sh ends all of it
(ask | play_answer "$folder/said") >/dev/null 2>&1 &
echo "$!" >"$folder/group"

read -r said <"$folder/said"
[ "$said" = ok ] || fail "$said"
waits=""
[ "$player" != afplay ] || waits=", once all of it has been made (brew install sox: at once)"
echo "Speaking $source_name$waits"
