#!/bin/sh
# A compiler launcher: compiles only as far as the errors go, and leaves an empty object, so that the build knows it is up
# to date. For tests that only a GPU could run, where there is none: no code is generated, which is most of the time.
"$@" -fsyntax-only || exit
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then
        : >"$2"
        exit
    fi
    shift
done
echo "check_syntax.sh: the command has no -o" >&2
exit 1
