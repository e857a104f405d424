#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where recipes are: the user's own first, then the installed ones, then those of each
# folder of XDG_DATA_DIRS; and what may be told of them.
. "$(dirname "$0")/cli.sh"

# recipe FOLDER NAME TITLE: a recipe there that says who it is
recipe() {
    mkdir -p "$(dirname "$1/$2")"
    printf '# %s\nmax_duration: 1ba\nmodel: mlp\n' "$3" >"$1/$2.yaml"
}
recipe user/recipes mine "Mine, on a line."
recipe user/recipes deep/mine "Mine, further in."
recipe user/recipes wine "My own wine."
recipe user/recipes .hidden "Hidden."
recipe user/recipes deep/.hidden "Hidden."
recipe user/recipes deep/er/mine "Too deep."
recipe user/recipes "" "Without a name."
recipe user/recipes a "The first of all."
recipe first/etude/recipes a "Another."
recipe user/recipes twice "The user's."
recipe first/etude/recipes twice "The first folder's."
recipe first/etude/recipes once "The first folder's."
recipe second/etude/recipes once "The second folder's."
recipe second/etude/recipes twice "The second folder's."
recipe second/etude/recipes last "The second folder's."
recipe third/etude/recipes third "The third folder's."
printf 'seed: 1\n# not a title\n' >user/recipes/plain.yaml
printf '###  Marked \033[1m.\n' >user/recipes/marks.yaml
: >user/recipes/empty.yaml
printf 'seed: 1\n' >user/recipes/other.yml
export ETUDE_CONFIG_DIR="$dir/user" XDG_DATA_DIRS="$dir/first:$dir/second::$dir/third"

# title NAME: what the list says of it
title() {
    "$etude" recipes | sed -n "s|^$1  *||p"
}
is "$(title mine)" "Mine, on a line." "a recipe of the user's is listed with its first line"
is "$(title deep/mine)" "Mine, further in." "one in a folder with that"
is "$(title wine)" "My own wine." "one that is called as an installed one stands for it"
is "$("$etude" recipes | grep -c '^wine ')" 1 "and once"
is "$(title twice)" "The user's." "the user's own go before all others"
is "$("$etude" recipes | grep -c '^a ')" 1 "and once, the first of the list, too"
is "$(title once)" "The first folder's." "a folder of XDG_DATA_DIRS before the next"
is "$(title last)" "The second folder's." "whose others are there"
is "$(title third)" "The third folder's." "as those behind an empty name are"
is "$("$etude" recipes | grep -c '^plain *$\|^empty *$')" 2 "where the first line is no remark there is no title"
is "$(title marks)" 'Marked \x1b[1m.' "what would move the terminal is shown"
is "$("$etude" recipes | grep -c 'Hidden\|^other\|Too deep\|Without')" 0 "neither hidden files nor those of another name are recipes"
run recipes --json
is "$(tr -d '\n' <out | grep -o '"name": "once",[^}]*' | tr -s ' ')" \
    "\"name\": \"once\", \"title\": \"The first folder's.\", \"path\": \"$dir/first/etude/recipes/once.yaml\" " \
    "in JSON with where it is"
for one in "mine Mine, on a line." "deep/mine Mine, further in." "wine My own wine." "twice The user's." \
    "once The first folder's." "last The second folder's." "third The third folder's."; do
    run recipes "${one%% *}"
    is "$(head -n 1 out)" "# ${one#* }" "${one%% *} is found there"
done
for name in .hidden deep/ deep/.. deep/.hidden deep/er/mine deep/mine/x /mine "" ./mine mine.yaml; do
    run recipes "$name"
    is "$code $(wc -c <out)" "66 0" "'$name' is not found: exit 66"
done
run validate -m deep/mine seed=x
says err "$dir/user/recipes/deep/mine.yaml" "--module_mode finds them, too"
run --ascii compose -m deep/mine --dump-screen 80x24
says out "max_duration" "as compose does"
run compose mine --dump-screen 80x24
says err "etude compose -m mine" "which says so where a name is no file"
exits 66 "... and fails: exit 66"
run compose -m no_such --dump-screen 80x24
exits 66 "one that is nowhere: exit 66"
run compose no_such --dump-screen 80x24
is "$(grep -c 'compose -m' err)" 0 "of which nothing else is said"
XDG_DATA_DIRS='' run recipes once
exits 66 "without XDG_DATA_DIRS the system's folders are looked at"
finish
