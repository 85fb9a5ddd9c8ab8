#!/bin/sh
# A compiler launcher: compiles only as far as errors go, and leaves an empty object, so that the build knows that it is up
# to date. For what only a GPU could run, where there is none: generating code takes most of the time. nvcc stops at PTX
# for one architecture, by when its front end has read the host's code too.
out=
previous=
architecture=
first=$1
for argument; do
    shift
    if [ "$previous" = -o ]; then out=$argument; fi
    previous=$argument
    case ${first##*/}:$argument in
    nvcc*:-c) set -- "$@" -ptx ;;
    nvcc*:--generate-code=*)
        if [ -z "$architecture" ]; then
            architecture=${argument#*arch=}
            set -- "$@" "-arch=${architecture%%,*}"
        fi
        ;;
    *) set -- "$@" "$argument" ;;
    esac
done
if [ -z "$out" ]; then
    echo "check_syntax.sh: the command has no -o" >&2
    exit 1
fi
case ${first##*/} in
nvcc*) ;;
*) set -- "$@" -fsyntax-only ;;
esac
"$@" && : >"$out"
