#!/bin/sh
# A compiler launcher: compiles only as far as errors go, and leaves an empty object, so that the build knows that it is up
# to date. For what only a GPU could run, where there is none: generating code takes most of the time.
case ${1##*/} in
nvcc*) "$@" -Xcompiler=-fsyntax-only || exit ;;
*) "$@" -fsyntax-only || exit ;;
esac
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then
        : >"$2"
        exit
    fi
    shift
done
echo "check_syntax.sh: the command has no -o" >&2
exit 1
