#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What may follow on a command line: as the program says, and as three shells offer it.
. "$(dirname "$0")/cli.sh"
export HOME="$dir" XDG_STATE_HOME="$dir/state"
PATH=$ET_BUILDDIR:$PATH
tiny r.yaml
mkdir sub

# offers LINE CANDIDATE... : these and no others, in any order; : lines among them
offers() {
    line=$1
    shift
    : >want
    "$etude" __complete --line "$line" >out 2>err || echo "exit $?" >>out
    cut -f1 out | sort >got
    [ $# = 0 ] || printf '%s\n' "$@" | sort >want
    cmp -s got want
    ok $? "'$line' goes on as ${*:-nothing we know}"
}
# includes LINE CANDIDATE NAME, lacks likewise
includes() {
    "$etude" __complete --line "$1" >out 2>err
    cut -f1 out | grep -qxF -e "$2"
    ok $? "$3"
}
lacks() {
    "$etude" __complete --line "$1" >out 2>err
    cut -f1 out | grep -qF -e "$2"
    ok $((! $?)) "$3"
}

# Commands and options.
offers "etude valid" validate :recipes
offers "etude --progress=p" --progress=plain
offers "etude train --color a" auto always
offers "etude train --run-na" --run-name
offers "etude train r.yaml --unset optimizer.ne" optimizer.nesterov
offers "etude train r.yaml --unset=optimizer.ne" --unset=optimizer.nesterov
offers "etude train r.yaml --unset=checkpoint.k" --unset=checkpoint.keep
includes "etude train --" --dry-run "a command has its options"
lacks "etude validate --" --dry-run "and no other's"
includes "etude train --" --on "and where it may be run"
offers "etude train -- --dry" :recipes
help=$("$etude" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | grep -c .)
later=$("$etude" help | grep -c '^  [a-z].*not in this version')
"$etude" __complete "" | grep -vc '^:' >out
is "$(cat out)" $((help - later)) "every command of help is offered, and no later one"

# Operands, by the synopsis.
offers "etude train " :recipes
offers "etude -C sub train " :recipes
offers "etude train -m fash" fashion_folder fashion_mnist fashion_mnist_resnet20 \
    fashion_segmentation
offers "etude train -m speed" speedup/bert_baseline speedup/bert_hot speedup/bert_medium \
    speedup/bert_mild speedup/bible_baseline speedup/bible_hot speedup/bible_medium \
    speedup/bible_mild speedup/fashion_baseline speedup/fashion_hot \
    speedup/fashion_medium speedup/fashion_mild speedup/scenes_baseline speedup/scenes_hot \
    speedup/scenes_medium speedup/scenes_mild
offers "etude recipes b" bible_bert bible_books bible_bpe_gpt bible_gpt bible_parts breast_cancer
offers "etude weights " ls diff convert export
offers "etude weights ls x" :files :folders
offers "etude weights convert x -o " :files
offers "etude weights frob "
offers "etude config " get set edit path
offers "etude config get ui." ui.plot ui.mouse ui.motion ui.theme
offers "etude completion " bash zsh fish
offers "etude help we" weights
includes "etude explain mi" mixup "explain takes a component"
offers "etude data inspect bible" bible_kjv
offers "etude data inspect bible_kjv seq_" seq_len=
offers "etude train --run_directory " :folders

# Runs.
run train r.yaml --alg mixup --run_directory runs/a --run_name brisk-otter --progress none
offers "etude show bri" brisk-otter :folders
includes "etude weights diff x " brisk-otter "weights diff takes two"
includes "etude eval " brisk-otter "eval takes a run"
includes "etude eval " :recipes "or a recipe"
grep -q '^brisk-otter	finished$' out
ok $? "a run's state is said"

offers "etude set brisk-otter " optimizer.lr= optimizer.weight_decay= algorithms.mixup.alpha=
offers "etude set brisk-otter optimizer.mom"
offers "etude algo brisk-otter " mixup alibi augmix blurpool channels_last colout cutmix cutout \
    ema factorize gated_linear_units ghost_batchnorm gradient_clipping gyro_dropout \
    label_smoothing layer_freezing low_precision_groupnorm low_precision_layernorm \
    progressive_resizing randaugment reduce_lr_on_plateau sam selective_backprop \
    seq_length_warmup squeeze_excite stochastic_depth swa weight_standardization
offers "etude algo brisk-otter mi" mixup
offers "etude algo elsewhere@lab-a mixu" mixup
offers "etude algo brisk-otter mixup " on off
offers "etude loglevel brisk-otter w" warn

# Keys and values.
offers "etude train r.yaml see" seed=
offers "etude train r.yaml checkpoint.k" checkpoint.keep=
offers "etude train r.yaml optimizer.nest" optimizer.nesterov=
offers "etude train r.yaml optimizer.bet"
offers "etude train r.yaml optimizer=adam optimizer.bet" optimizer.betas=
offers "etude train nothing.yaml optimizer.bet" optimizer.betas=
offers "etude train r.yaml optimizer.name=adam" optimizer.name=adam optimizer.name=adamw
offers "etude train r.yaml algorithms.mixup.al" algorithms.mixup.alpha=
offers "etude train r.yaml algorithms.mix" algorithms.mixup. algorithms.mixup=
offers "etude train r.yaml algorithms.mixup=" algorithms.mixup=false
offers "etude train r.yaml device=c" device=cpu
offers "etude train r.yaml deterministic=t" deterministic=true
offers "etude train r.yaml model.weights=" :files
offers "etude train r.yaml model.weights=sub/a.b" :files
offers "etude train r.yaml --alg mix" mixup
includes "etude train r.yaml eval_data.0." eval_data.0.label= "an item of a list has its keys"
offers "etude train r.yaml seed.x"

# Layers and their options.
printf 'model: {name: layers, layers: [conv2d: {out: 4, kernel: 3}, relu, flatten, linear: {out: 10}]}\n' >l.yaml
grep -v '^model' r.yaml >>l.yaml
offers "etude train l.yaml model.layers" model.layers. model.layers=
offers "etude train l.yaml model.layers." model.layers.0. model.layers.0= model.layers.1= model.layers.2= \
    model.layers.3. model.layers.3=
offers "etude train l.yaml model.layers.1=sil" model.layers.1=silu
offers "etude train l.yaml model.layers.1=dropo" model.layers.1=dropout
offers "etude train l.yaml model.layers.0.max_" model.layers.0.max_pool2d. model.layers.0.max_pool2d=
offers "etude train l.yaml model.layers.0.conv2d.kern" model.layers.0.conv2d.kernel=
offers "etude train l.yaml model.layers.0.conv2d.no_such"
offers "etude train l.yaml model.layers.0.resid" model.layers.0.residual. model.layers.0.residual=
offers "etude train l.yaml model.layers.0.repeat." model.layers.0.repeat.layers. model.layers.0.repeat.layers= \
    model.layers.0.repeat.times=
offers "etude train l.yaml model.layers.0.residual.shortcut.0.conv2d.kern" \
    model.layers.0.residual.shortcut.0.conv2d.kernel=
offers "etude train l.yaml model.layers.0.residual.0.max_" model.layers.0.residual.0.max_pool2d. \
    model.layers.0.residual.0.max_pool2d=
offers "etude train l.yaml model.layers.0.conv2d=f"
run train l.yaml model.layers.0.conv2d.kernel=5 --dry-run
exits 0 "a key of a layer may be set"

# What a part is, by the recipe or by the line; the later word counts.
offers "etude train r.yaml optimizer.name=adam optimizer.bet" optimizer.betas=
offers "etude train r.yaml optimizer=adam optimizer.name=sgd optimizer.bet"
offers "etude train r.yaml optimizer=nothing optimizer.nest" optimizer.nesterov=
offers "etude train r.yaml optimizers=adam optimizer.bet"
offers "etude train -m fashion_mnist optimizer.nest" optimizer.nesterov=
offers "etude train r.yaml --run-name x optimizer=adam optimizer.bet" optimizer.betas=
offers "etude train r.yaml model.hid" model.hidden=
offers "etude train r.yaml model=gpt2 model.hid"
offers "etude train r.yaml optim" optimizer. optimizer=
offers "etude train r.yaml --unset optim" optimizer. optimizer
offers "etude train r.yaml --unset=optim" --unset=optimizer. --unset=optimizer
offers "etude train r.yaml checkpoin" checkpoint.
offers "etude train r.yaml --unset checkpoin" checkpoint. checkpoint
offers "etude train r.yaml train_data.shuffle=" train_data.shuffle=true train_data.shuffle=false
offers "etude train r.yaml train_data.spl" train_data.split=
offers "etude train r.yaml train_data.split=" train_data.split=train train_data.split=test
offers "etude train r.yaml train_data.path="
offers "etude train r.yaml optimizer=ada" optimizer=adam optimizer=adamw
offers "etude train r.yaml algorithms.mixup.alpha="
offers "etude train r.yaml scheduler.0.name=cosine" scheduler.0.name=cosine scheduler.0.name=cosine_warm_restarts \
    scheduler.0.name=cosine_with_warmup scheduler.0.name=cosine_with_cooldown
offers "etude train r.yaml loggers.jso" loggers.jsonl. loggers.jsonl=

# Options: how they are written, and which have a value.
offers "etude train --run_na" --run_name
offers "etude train --json="
offers "etude train --directory=sub r.yaml see" seed=
offers "etude train --alg=mix" --alg=mixup
offers "etude train --on="
offers "etude train --module_mode speedup/bert_m" speedup/bert_medium speedup/bert_mild
offers "etude explain label-smoo" :recipes
offers "etude explain label_smoo" label_smoothing :recipes
offers "etude runs --sort="
offers "etude train r.yaml --quiet see" seed=
offers "etude train r.yaml --every 2s see" seed=
offers "etude train r.yaml --every=2s see" seed=

# Operands: whole words, and as many as there may be.
offers "etude weights conv "
offers "etude weights xport "
offers "etude weights ls x y" :files :folders
offers "etude show brisk-otter "
offers "etude validate r.yaml see" seed= :recipes
offers "etude data inspect bible_kjv seq_len=8 spl" split=
offers "etude completion bash "
offers "etude help train "
offers "etude train dir=x/r.yaml see" seed=

# Quotes and backslashes, as a shell reads them.
# (Of a recipe that is not found any optimizer's keys are offered.)
for name in 'back\slash.yaml' 'a "b".yaml' "it's.yaml" -odd.yaml sub/own.yaml; do cp r.yaml "./$name"; done
offers "etude train 'back\\slash.yaml' optimizer.bet"
offers "etude train back\\\\slash.yaml optimizer.bet"
offers "etude train \"a \\\"b\\\".yaml\" optimizer.bet"
offers "etude train 'a \"b\".yaml' optimizer.bet"
offers "etude train \"it's.yaml\" optimizer.bet"
offers "etude train -- -odd.yaml optimizer.bet"
offers "etude -C sub train own.yaml optimizer.bet"
offers "etude -C sub train r.yaml optimizer.bet" optimizer.betas=
offers "etude -m fashion_mnist_" fashion_mnist_resnet20
offers "etude   train    r.yaml    see" seed=

# Lines that are odd.
offers "etude train 'a b.yaml' see" seed=
offers 'etude train a\ b.yaml se"e' seed=
offers "etude nothing" :recipes
printf 'max_duration: [\n' >bad.yaml
offers "etude train bad.yaml seed" seed=
run __complete
exits 0 "no words at all are no fault"

mkdir user && printf 'lab-a: {address: "ssh://lab-a"}\n' >user/workers.yaml
ETUDE_CONFIG_DIR=$dir/user
export ETUDE_CONFIG_DIR
offers "etude train --on la" lab-a
offers "etude worker test la" lab-a
export ETUDE_CONFIG_DIR="$dir/no-config"

run completion
exits 64 "completion wants a shell: exit 64"
run completion tcsh
exits 64 "one that there is a script for: exit 64"

# ---- the shells themselves ----

# has SHELL TESTS: else they are skipped
has() {
    command -v "$1" >/dev/null 2>&1 && return 0
    for i in $(seq "$2"); do
        n=$((n + 1))
        echo "ok $n # SKIP there is no $1"
    done
    return 1
}
for shell in bash zsh fish; do
    "$etude" completion $shell >c.$shell
done
touch "one file.safetensors"

# Keys as they are typed, at a terminal: tab, and what came of it is run.
typed() {
    rm -f got
    printf "$1"'\nexit\n' | timeout 600 script -qec "$2" /dev/null >out 2>&1
    touch got
}
keys='etude conf\tpa\t>got'
if has bash 6; then
    # shellcheck disable=SC2016
    reply='. ./c.bash; COMP_LINE=$1 COMP_POINT=${#1}; _etude etude; printf "%s\n" "${COMPREPLY[@]}"'
    is "$(bash -c "$reply" - "etude valid")" validate "bash: commands"
    is "$(bash -c "$reply" - "etude train --color=al")" always "bash: what follows a ="
    is "$(bash -c "$reply" - "etude train r.yaml optimizer.name=adamw")" adamw "bash: values of keys"
    is "$(bash -c "$reply" - "etude train r.")" r.yaml "bash: recipes are files"
    printf '. ./c.bash\n' >rc.bash
    typed "$keys" "bash --rcfile rc.bash -i"
    is "$(cat got)" "$dir/no-config/config.yaml" "bash: tab completes commands and operands"
    typed 'etude weights ls one\t 2>got' "bash --rcfile rc.bash -i"
    says got "one file.safetensors: 0 bytes" "bash: a file's blanks are quoted"
fi
if has zsh 2; then
    mkdir -p z
    printf 'autoload -Uz compinit\ncompinit -u -D\n. ./c.zsh\n' >z/.zshrc
    typed "$keys" "env ZDOTDIR=$dir/z zsh -i"
    is "$(cat got)" "$dir/no-config/config.yaml" "zsh: tab completes commands and operands"
    mkdir -p zi/functions # as it is installed
    cp c.zsh zi/functions/_etude
    printf 'fpath=(%s $fpath)\nautoload -Uz compinit\ncompinit -u -D\n' "$dir/zi/functions" >zi/.zshrc
    typed 'etude explain r.yaml --ori\tsee\t17 >got' "env ZDOTDIR=$dir/zi zsh -i"
    says got "seed = 17" "zsh: a key is followed by its value, without a blank"
fi
if has fish 5; then
    reply() {
        HOME=$dir fish --no-config -c ". ./c.fish; complete -C '$1'" | cut -f1 | tr '\n' ' '
    }
    is "$(reply "etude valid")" "validate " "fish: commands"
    is "$(reply "etude train --color=al")" "--color=always " "fish: what follows a ="
    is "$(reply "etude train r.yaml optimizer.nest")" "optimizer.nesterov= " "fish: keys"
    is "$(reply "etude weights ls one")" "one file.safetensors " "fish: files"
    is "$(reply "etude train r.")" "r.yaml " "fish: recipes are files"
fi
finish
