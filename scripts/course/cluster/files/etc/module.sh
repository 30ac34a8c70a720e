# shellcheck shell=bash
# A stand-in for the module system (Lmod) of the real cluster. It knows the modules that the
# course values name and keeps a list of the loaded ones. It changes nothing else: the python3
# of the practice cluster is the one of the machine that it runs on.

module() {
    local known="@MODULES@" name wanted=()
    case "${1-}" in
        load | add)
            shift
            for name in "$@"; do
                if [[ " $known " != *" $name "* ]]; then
                    printf 'Lmod has detected the following error:  The following module(s) are unknown: "%s"\n' "$name" >&2
                    return 1
                fi
            done
            for name in "$@"; do
                [[ ":${LOADEDMODULES-}:" == *":$name:"* ]] && continue
                export LOADEDMODULES="${LOADEDMODULES:+$LOADEDMODULES:}$name"
                printf 'Module %s loaded.\n' "$name" >&2
            done
            ;;
        unload | rm | del)
            shift
            local IFS=: loaded
            for loaded in ${LOADEDMODULES-}; do
                for name in "$@"; do [ "$loaded" = "$name" ] && continue 2; done
                wanted+=("$loaded")
            done
            export LOADEDMODULES="${wanted[*]-}"
            ;;
        purge) unset LOADEDMODULES ;;
        list)
            if [ -z "${LOADEDMODULES-}" ]; then
                echo 'No modules loaded' >&2
            else
                printf 'Currently Loaded Modules:\n%s\n' "$(tr : '\n' <<<"$LOADEDMODULES" | cat -n)" >&2
            fi
            ;;
        avail | av | spider) tr ' ' '\n' <<<"$known" | grep --ignore-case -- "${2-}" >&2 ;;
        *)
            cat >&2 <<'HELP'
A stand-in of the practice cluster for the command "module" of the real one.
  module load NAME...     module unload NAME...     module purge
  module list             module avail [NAME]       module spider [NAME]
HELP
            [[ "${1-}" =~ ^(-h|--help|help)?$ ]]
            ;;
    esac
}
