/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_pass.c: a pass of your own: what orders the training methods of a recipe.
 *
 * At each event the methods that act there are called in an order, which passes make:
 * the recipe's order, reversed at AFTER_ events, then those first and last that say so.
 * This one puts them in the order of their names before that. So recipes that list the
 * same methods in different orders are the same run.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o by_name.so plugin_pass.c
 *     etude config set plugins.by_name "{path: $PWD/by_name.so, develop: true}"
 *
 * A recipe with `plugins: [by_name]` has it; `etude explain RECIPE` shows the order. */
#include <etude/etude.h>

#include <string.h>

/* N algorithms at EVENT: a pass moves them, and neither drops one nor adds one. Where
 * it has no opinion it leaves them as they are. */
static void
by_name(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    for (int i = 1; i < n; i++) {
        struct et_algorithm *a = list[i];
        int at = i;
        for (; at > 0 && strcmp(list[at - 1]->type->info.name, a->type->info.name) > 0;
             at--)
            list[at] = list[at - 1];
        list[at] = a;
    }
}

/* Behind the reversal, which would undo it at half of the events, and before the
 * sorting by what each method says of its place. */
static const struct et_pass pass = {
    .name = "by_name",
    .summary = "methods act in the order of their names",
    .run = by_name,
    .after = "reverse",
};
static const struct et_pass *const passes[] = {&pass, NULL};

ET_PLUGIN(.passes = passes)
