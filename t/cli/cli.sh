# SPDX-License-Identifier: Apache-2.0
# cli.sh: what the tests of the program share: t/tap.sh, a home without other runs or
# settings, and a recipe.
# shellcheck shell=sh
. "$(dirname "$0")/../tap.sh"
etude=$ET_BUILDDIR/etude
export OMP_NUM_THREADS=1
unset WORLD_SIZE LOCAL_WORLD_SIZE SLURM_NTASKS RANK LOCAL_RANK MASTER_ADDR MASTER_PORT BASE_RANK NODE_RANK NO_COLOR CLICOLOR_FORCE
unset ETUDE_LIMIT_BATCHES ETUDE_RUN_NAME ETUDE_DEVICE
export CUDA_VISIBLE_DEVICES= # auto is the processor, also beside a GPU
# Built without oneDNN: "ref", asked for, so that no warning is among what is compared.
[ -e "$ET_BUILDDIR/libetude-cpu.la" ] || export ETUDE_DEVICE=ref
shown="out err"
own_folder etude-cli
mkdir -m 700 .sockets
# Nothing is shared with other tests, whose runs may have the same names.
export XDG_STATE_HOME="$dir/state" XDG_RUNTIME_DIR="$dir/.sockets"
# A folder that is not there; nothing outside is looked for, or depends on who runs this.
export ETUDE_CONFIG_DIR="$dir/.absent"

# run ARGS...: sets code, out and err (files)
run() {
    "$etude" "$@" >out 2>err </dev/null
    code=$?
}

# exits CODE NAME: the last run's
exits() {
    is "$code" "$1" "$2"
}

# until_true SHELL: waits until it succeeds, which a loaded machine may take long for. What
# never comes is a failure.
until_true() {
    patience=0
    until eval "$1"; do
        patience=$((patience + 1))
        if [ $patience -gt 1200 ]; then
            ok 1 "within two minutes: $1"
            return 1
        fi
        sleep 0.1
    done
}

# family PID: the processes of the run that `etude train`, process PID, shows: its
# supervisor and the ranks
family() {
    for child in $(ps -o pid= --ppid "$1"); do
        echo "$child"
        family "$child"
    done
}

# kill_run PID: at once and without a word, as a machine that goes down would
kill_run() {
    # shellcheck disable=SC2046
    kill -9 $(family "$1") 2>/dev/null
    wait "$1" 2>/dev/null
}

# damage FILE AT: the byte there is another one (what was trained may have any)
damage() {
    byte=x
    [ "$(dd if="$1" bs=1 skip="$2" count=1 2>/dev/null)" != x ] || byte=y
    printf $byte | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# tiny NAME: a recipe of noise images and a small net, two batches long
tiny() {
    cat >"$1" <<'R'
max_duration: 2ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
}
