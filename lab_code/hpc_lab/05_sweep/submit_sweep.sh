#!/bin/bash
# Lab 05: train with several learning rates at once, then collect the results. Type this:
#
#     source ../00_setup/setup_env.sh
#     mkdir -p logs && ./submit_sweep.sh
# The next line stops the script when the first of these two is forgotten.
: "${WS_DIR:?run source ../00_setup/setup_env.sh first}"

# The learning rates to try, one job each. Do you want others, or more? Change them here.
learning_rates=(0.003 0.01 0.03 0.1)

# The jobs are counted from 0, so with four of them the last one is number 3.
last=$((${#learning_rates[@]} - 1))
if ! grep --quiet "^#SBATCH --array=0-$last\$" sweep.sbatch; then
    echo "For ${#learning_rates[@]} learning rates, sweep.sbatch needs this line:" >&2
    echo "#SBATCH --array=0-$last" >&2
    exit 1
fi

# --parsable: print nothing but the number of the job.
sweep=$(sbatch --parsable sweep.sbatch "${learning_rates[@]}") || exit 1

# The collector waits until all jobs of the array are over. afterany: also when some of them
# failed. (With afterok it would then wait forever.)
collect=$(sbatch --parsable --dependency="afterany:$sweep" collect.sbatch "$sweep" \
    "${learning_rates[@]}") || exit 1

echo "sweep (array) job : $sweep"
echo "collect job       : $collect (waits for $sweep, squeue shows it as Dependency)"
