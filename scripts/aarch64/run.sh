#!/usr/bin/env bash
# Do our integer operators and the int8 graph compute on ARM64 what they compute here? Under emulation: right or
# wrong, nothing about speed. Of the library that the wheel for ARM64 has, each instruction set; and what a machine
# with GCC builds. Needs root on Debian, Zig (`make test-long` installs it), and some 10 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
WORK="${1:-/var/tmp/kokoro-lab-aarch64}"
ROOT="$WORK/root"

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Not checked: this needs root on Debian, to make a small ARM64 system beside this one."
  exit 0
fi
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  qemu-user-static debootstrap g++-aarch64-linux-gnu >/dev/null
mkdir -p "$WORK/cases" "$WORK/wheels"
mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
fi

if [ ! -e "$ROOT/usr/bin/python3" ]; then
  debootstrap --foreign --arch=arm64 --variant=minbase --include=python3 bookworm "$ROOT"
  chroot "$ROOT" /debootstrap/debootstrap --second-stage
fi
.venv/bin/python -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 --implementation cp \
  --abi cp311 --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
  -d "$WORK/wheels" "onnxruntime==$(.venv/bin/python -c 'import onnxruntime; print(onnxruntime.__version__)')" \
  "numpy==$(.venv/bin/python -c 'import numpy; print(numpy.__version__)')"
mkdir -p "$ROOT/opt/check/site"
for wheel in "$WORK"/wheels/*.whl; do .venv/bin/python -m zipfile -e "$wheel" "$ROOT/opt/check/site"; done

rm -f "$WORK"/cases/* "$ROOT"/opt/check/*.onnx
.venv/bin/python scripts/aarch64/prepare.py "$WORK/cases"
.venv/bin/python scripts/wheels/build.py --operators "$WORK/prebuilt" linux-aarch64
cp "$WORK/prebuilt/operators.so" "$WORK/cases/"
# As an Apple M1 or a Raspberry Pi 5 would build it: with the dot product of bytes
aarch64-linux-gnu-g++ -std=c++17 -O3 -march=armv8.2-a+dotprod -shared -fPIC -fvisibility=hidden -fno-math-errno -fno-trapping-math \
  -fopenmp-simd --param=avoid-fma-max-bits=0 kokoro_lab/native/*.cpp -o "$WORK/cases/native.so"
cp "$WORK"/cases/* scripts/aarch64/check.py "$ROOT/opt/check/"
failed=0
for library in operators.so:neon operators.so:dotprod operators.so:i8mm native.so; do
  echo "$library"
  chroot "$ROOT" env PYTHONPATH=/opt/check/site python3 /opt/check/check.py /opt/check "$library" || failed=1
done
exit $failed
