#!/bin/sh
# Runs PROGRAM… on a full disk: each has to end with 1 and one sentence. full_disk.sh PROGRAM…
expected='standard output cannot be written, and part of what was to be printed is missing'
status=0
for program in "$@"; do
    said=$("$program" 2>&1 >/dev/full)
    code=$?
    [ "$code" -eq 1 ] && [ "$said" = "$expected" ] && continue
    echo "$program ended with $code and said '$said'; expected 1 and '$expected'"
    status=1
done
exit $status
