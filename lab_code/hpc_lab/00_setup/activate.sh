# shellcheck shell=bash
# Switches the lab's environment on in this shell, and installs nothing. For job scripts:
#
#     source ../00_setup/activate.sh || exit 1
#
# Silent when all is well. Otherwise one sentence in the job's .err file, and the job ends.
#
# Windows line ends would break every line of this file but the next one, which ends in a
# comment. (That is why there is no empty line above it.)
if command grep -q "$(printf '\r')" "${BASH_SOURCE[0]:-$0}"; then printf '%s\n' "${BASH_SOURCE[0]:-$0} has Windows line ends. Type: sed -i 's/\\r\$//' '${BASH_SOURCE[0]:-$0}'" >&2; return 1; fi #

# The folder of this file: bash has its name in BASH_SOURCE, zsh in $0.
_lab_folder=${BASH_SOURCE[0]:-$0}
case $_lab_folder in
    */*) _lab_folder=${_lab_folder%/*} ;;
    *) _lab_folder=. ;;
esac

# Python comes from a module, so this is first. The second line finds the workspace and looks
# whether all is there; if not, it says so.
# shellcheck source=modules.sh
. "$_lab_folder/modules.sh" || return 1
_lab_workspace=$(command bash "$_lab_folder/check.sh" environment) || return 1

export WS_DIR="$_lab_workspace"
unset _lab_folder _lab_workspace

# What "source venv/bin/activate" does, without its function and its change of the prompt.
export VIRTUAL_ENV="$WS_DIR/venv"
case $PATH in
    "$VIRTUAL_ENV/bin:"*) ;;
    *) export PATH="$VIRTUAL_ENV/bin:$PATH" ;;
esac
# Packages from anywhere else ("pip install --user", another course) stay out.
export PYTHONNOUSERSITE=1
unset PYTHONPATH PYTHONHOME

# Every program has a cache, and most of them would put it into the home folder.
export XDG_CACHE_HOME="$WS_DIR/.cache"
export PIP_CACHE_DIR="$WS_DIR/.cache/pip"
export HF_HOME="$WS_DIR/.cache/huggingface" # the models of lab 06
export HF_HUB_CACHE="$HF_HOME/hub"
export HF_XET_CACHE="$HF_HOME/xet"
export TORCH_HOME="$WS_DIR/.cache/torch"
export TORCHINDUCTOR_CACHE_DIR="$WS_DIR/.cache/torchinductor"
export TRITON_CACHE_DIR="$WS_DIR/.cache/triton"
export CUDA_CACHE_PATH="$WS_DIR/.cache/cuda"
export MPLCONFIGDIR="$WS_DIR/.cache/matplotlib"
