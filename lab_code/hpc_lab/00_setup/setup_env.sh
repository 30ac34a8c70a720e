# shellcheck shell=bash
# Makes the lab's environment (the first time: a few minutes) and switches it on (every time).
#
#     source 00_setup/setup_env.sh
#
# The first time, do it in a job, because installing is real work. If you forget, it reminds
# you. Later, type it in every new terminal.
#
# It is sourced, so it runs inside your shell. That is why it does so little itself: the work
# is done by install.sh in a shell of its own, and your shell's options, folder, traps and
# functions stay as they are. It is also why there is no "exit" here: it would close your
# terminal.
#
# Windows line ends would break every line of this file but the next one, which ends in a
# comment. (That is why there is no empty line above it.)
# shellcheck disable=SC2317  # a shell that is not sourced goes on after "return"
if command grep -q "$(printf '\r')" "${BASH_SOURCE[0]:-$0}"; then printf '%s\n' "The lab's files have Windows line ends. In the folder 00_setup, type: sed -i 's/\\r\$//' *.sh *.env *.txt" >&2; case $- in *e*i* | *i*e*) return 0 ;; *) return 1 2>/dev/null || exit 1 ;; esac; fi #

# The folder of this file: bash has its name in BASH_SOURCE, zsh in $0.
_lab_file=${BASH_SOURCE[0]:-$0}
case $_lab_file in
    */*) _lab_folder=${_lab_file%/*} ;;
    *) _lab_folder=. ;;
esac

# Three steps: load the modules, make what is missing, switch it on. Each one says itself, in a
# sentence, what went wrong. Then the ones after it are left out.
# shellcheck source=modules.sh source=activate.sh
if . "$_lab_folder/modules.sh" &&
    command bash "$_lab_folder/install.sh" "$_lab_file" "${1:-}" &&
    . "$_lab_folder/activate.sh"; then
    echo "environment ready"
    _lab_status=0
    # bash FILE and zsh FILE: the settings are in a shell that ends here.
    if [ "${BASH_SOURCE[0]:-}" = "$0" ] || [ "${ZSH_EVAL_CONTEXT:-}" = toplevel ]; then
        echo "These settings end with the shell that ran it. In yours, type: source $_lab_file"
    fi
else
    _lab_status=$?
    # 128 + 9: killed by a signal that install.sh has no chance to answer.
    [ "$_lab_status" -ne 137 ] ||
        echo "The setup was killed. Type the same again: what was downloaded is kept." >&2
fi

# With "set -e" a failure would close an interactive shell, so there it is not passed on.
case $- in
    *e*i* | *i*e*) _lab_status=0 ;;
esac
unset _lab_file _lab_folder _lab_modules _lab_module _lab_workspace
if [ "$_lab_status" -eq 0 ]; then
    unset _lab_status
else
    unset _lab_status
    false
fi
