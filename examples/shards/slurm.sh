#!/bin/sh
#SBATCH --job-name=servegrid
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#
# One task for each of eight shards of a grid, on any nodes that share a file system:
#
#   sbatch slurm.sh grid.yaml runs/grid            # all shards, tasks 1 to 8
#   sbatch --array=3,7 slurm.sh grid.yaml runs/grid # those that were lost: they go on where they were
#   servegrid merge runs/grid --output runs/grid-merged
#
# With another number of shards: sbatch --array=1-64 slurm.sh grid.yaml runs/grid 64
set -eu
spec=$1
output=$2
shards=${3:-8}

# exec lets the signal before the time limit reach the sweep, which then ends with all that is finished on the disk.
exec servegrid sweep "$spec" --output "$output" --shard "auto/$shards" --jobs "${SLURM_CPUS_PER_TASK:-0}" --quiet
