# shellcheck shell=bash
# Loads the modules that course.env names into this shell, where the machine has modules.
# Sourced by setup_env.sh and activate.sh, which set _lab_folder to the folder of this file.

# shellcheck disable=SC2154
_lab_modules=$(command bash "$_lab_folder/check.sh" modules) || return 1
# $(…) and not the variable alone: bash and zsh both split this one into words.
for _lab_module in $(printf '%s' "$_lab_modules"); do
    type module >/dev/null 2>&1 || break
    case ":${LOADEDMODULES:-}:" in
        *":$_lab_module:"*) continue ;;
    esac
    if ! module load "$_lab_module" >/dev/null 2>&1; then
        printf '%s %s\n' "The module $_lab_module cannot be loaded. To see which ones there are," \
            "type: module spider ${_lab_module%%/*}" >&2
        return 1
    fi
done
unset _lab_modules _lab_module
