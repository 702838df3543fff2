#!/bin/sh
# Screenshots of reports in a real browser: at the width of a phone and of a desk, light and dark. Fails when the browser
# tells of an error, or when a page is wider than the phone. Usage: report_check.sh DIRECTORY PAGE.html...
set -u
out=$1
shift
command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium || exit 2
mkdir -p "$out"
failed=0
for page in "$@"; do
  name=$(basename "$(dirname "$page")")
  url=file://$(realpath "$page")
  for width in 390 1280; do
    for mode in 0:dark 1:light; do
      picture=$out/$name-$width-${mode#*:}.png
      # A window below 500 has no room for the browser; an iframe has the phone's width.
      frame=$out/frame.html
      printf '<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0"><iframe src="%s" style="border:0;width:%spx;height:%spx"></iframe>' \
        "$url" "$width" 6000 > "$frame"
      log=$(chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --hide-scrollbars \
        --blink-settings=preferredColorScheme="${mode%:*}" --window-size=$((width < 500 ? 500 : width)),6000 \
        --enable-logging=stderr --screenshot="$picture" "file://$(realpath "$frame")" 2>&1)
      if ! [ -s "$picture" ] || echo "$log" | grep -q 'CONSOLE'; then
        echo "$page at $width, ${mode#*:}: $(echo "$log" | grep CONSOLE)" >&2
        failed=1
      else
        echo "$picture"
      fi
      rm -f "$frame"
    done
  done
done
exit $failed
