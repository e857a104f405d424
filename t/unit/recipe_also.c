/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_also.c: PyTorch's names of options are understood, and stored as
 * ours; the keys of others are not, and ours are said. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/edit.h"
#include "core/recipe/options.h"
#include "etude/module.h"
#include "etude/nn.h"
#include "t/tap.h"
#include "t/unit/recipe_read.h"

/* ---- tables ---- */

/* No two rows of TABLE share a name, and only a truth value has an opposite. */
static void
check_table(const char *owner, const struct et_option *table)
{
    struct eti_names names = {.n = 0};
    int twice = 0;
    eti_names_add(&names, table);
    for (int i = 0; i < names.n; i++)
        for (int k = 0; k < i; k++)
            twice += strcmp(names.v[i], names.v[k]) == 0;
    for (const struct et_option *o = table; o && o->name; o++)
        twice += o->also && strchr(o->also, '!') && o->type != ET_OPT_BOOL;
    if (twice)
        is_int(twice, 0, "each name in the options of %s means one of them", owner);
}

/* What is offered in place of a name that is wrong is what may stand there: not the
 * names that only say what is meant. */
static void
test_offered(void)
{
    static const struct et_option table[] = {
        {.name = "length", .also = "size !short ~long"}, {.name = "width"}, {0}};
    static const char *const want[] = {"length", "size", "short", "width"};
    struct eti_names names = {.n = 0};
    eti_names_add(&names, table);
    is_int(names.n, 4, "four names are offered");
    for (int i = 0; i < 4 && i < names.n; i++)
        is_str(names.v[i], want[i], "'%s' is", want[i]);
}

static void
test_tables(void)
{
    const struct et_registry *all = et_registry_core();
    const struct et_component *c;
    int n = 0;
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        for (int i = 0; (c = all->get(all, (enum et_kind)kind, i)); i++, n++)
            check_table(c->name, c->options);
    for (const struct et_module_class *const *m = et_module_classes; *m; m++, n++)
        check_table((*m)->info.name, (*m)->info.options);
    ok(n > 100, "each name in a table of options means one option, in %d tables", n);
}

/* What torch 2.9 calls the parameters of each class that we have too. Behind "|": those
 * that there is nothing for here. */
static const struct {
    enum et_kind kind; /* ET_KIND_COUNT: a layer */
    const char *name, *theirs;
} signatures[] = {
    {ET_KIND_COUNT, "conv2d",
     "in_channels out_channels kernel_size stride padding dilation groups bias"
     "| padding_mode device dtype"},
    {ET_KIND_COUNT, "conv_transpose2d",
     "in_channels out_channels kernel_size stride padding output_padding groups bias"
     "| dilation padding_mode device dtype"},
    {ET_KIND_COUNT, "linear", "in_features out_features bias | device dtype"},
    {ET_KIND_COUNT, "batch_norm",
     "num_features eps momentum affine | track_running_stats device dtype bias"},
    {ET_KIND_COUNT, "layer_norm",
     "normalized_shape eps elementwise_affine bias | device dtype"},
    {ET_KIND_COUNT, "group_norm",
     "num_groups num_channels eps affine | device dtype bias"},
    {ET_KIND_COUNT, "dropout", "p | inplace"},
    {ET_KIND_COUNT, "max_pool2d",
     "kernel_size stride padding dilation ceil_mode | return_indices"},
    {ET_KIND_COUNT, "avg_pool2d",
     "kernel_size stride padding ceil_mode | count_include_pad divisor_override"},
    {ET_KIND_COUNT, "adaptive_avg_pool2d", "output_size"},
    {ET_KIND_OPTIMIZER, "sgd",
     "lr momentum dampening weight_decay nesterov | maximize foreach differentiable "
     "fused"},
    {ET_KIND_OPTIMIZER, "adam",
     "lr betas eps weight_decay amsgrad | foreach maximize capturable differentiable "
     "fused decoupled_weight_decay"},
    {ET_KIND_OPTIMIZER, "adamw",
     "lr betas eps weight_decay amsgrad | maximize foreach capturable differentiable "
     "fused"},
    {ET_KIND_OPTIMIZER, "rmsprop",
     "lr alpha eps weight_decay momentum | centered capturable foreach maximize "
     "differentiable"},
    {ET_KIND_OPTIMIZER, "radam",
     "lr betas eps weight_decay | decoupled_weight_decay maximize foreach capturable "
     "differentiable"},
    {ET_KIND_OPTIMIZER, "muon",
     "lr weight_decay momentum nesterov eps ns_steps adjust_lr_fn | ns_coefficients"},
    {ET_KIND_SCHEDULER, "step", "step_size gamma | last_epoch"},
    {ET_KIND_SCHEDULER, "multistep", "milestones gamma | last_epoch"},
    {ET_KIND_SCHEDULER, "constant", "factor total_iters | last_epoch"},
    {ET_KIND_SCHEDULER, "linear", "start_factor end_factor total_iters | last_epoch"},
    {ET_KIND_SCHEDULER, "exponential", "gamma | last_epoch"},
    {ET_KIND_SCHEDULER, "cosine", "T_max eta_min | last_epoch"},
    {ET_KIND_SCHEDULER, "cosine_warm_restarts", "T_0 T_mult eta_min | last_epoch"},
    {ET_KIND_SCHEDULER, "polynomial", "total_iters power | last_epoch"},
    {ET_KIND_SCHEDULER, "one_cycle",
     "total_steps pct_start anneal_strategy div_factor final_div_factor three_phase"
     "| max_lr epochs steps_per_epoch cycle_momentum base_momentum max_momentum "
     "last_epoch"},
    {ET_KIND_DATASET, "fashion_mnist",
     "batch_size shuffle drop_last num_workers | sampler collate_fn pin_memory"},
    {ET_KIND_TRANSFORM, "resize", "size | interpolation antialias"},
    {ET_KIND_TRANSFORM, "center_crop", "size"},
    {ET_KIND_TRANSFORM, "random_crop", "size padding | pad_if_needed fill"},
    {ET_KIND_TRANSFORM, "horizontal_flip", "p"},
    {ET_KIND_TRANSFORM, "normalize", "mean std | inplace"},
    {ET_KIND_ALGORITHM, "gradient_clipping",
     "clipping_type clipping_threshold max_norm clip_value"},
    {ET_KIND_ALGORITHM, "ema", "half_life smoothing ema_start update_interval decay"},
    {ET_KIND_ALGORITHM, "mixup", "alpha interpolate_loss"},
    {ET_KIND_ALGORITHM, "label_smoothing", "smoothing"},
    {ET_KIND_ALGORITHM, "sam", "rho epsilon interval"},
    {ET_KIND_ALGORITHM, "selective_backprop", "start end keep scale_factor interrupt"},
    {ET_KIND_ALGORITHM, "blurpool",
     "replace_convs replace_maxpools blur_first min_channels"},
    {ET_KIND_ALGORITHM, "progressive_resizing",
     "mode initial_scale finetune_fraction delay_fraction size_increment "
     "resize_targets"},
    {ET_KIND_ALGORITHM, "stochastic_depth",
     "target_layer_name stochastic_method drop_rate drop_distribution drop_warmup"},
    {ET_KIND_ALGORITHM, "gyro_dropout", "p sigma tau"},
    {ET_KIND_ALGORITHM, "seq_length_warmup",
     "duration min_seq_length max_seq_length step_size truncate "
     "preserve_end_of_sequence"},
};

static const struct et_option *
table_of(enum et_kind kind, const char *name)
{
    const struct et_module_class *m =
        kind == ET_KIND_COUNT ? et_module_class_find(name) : NULL;
    const struct et_component *c =
        kind == ET_KIND_COUNT ? NULL : et_registry_find(NULL, kind, name);
    return m ? m->info.options : c ? c->options : NULL;
}

static void
test_signatures(void)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const struct et_option *table =
            table_of(signatures[i].kind, signatures[i].name);
        char unknown[256] = "", word[64], mark;
        const char *s = signatures[i].theirs;
        for (int n; sscanf(s, " %63[^ |]%n", word, &n) == 1; s += n)
            if (!eti_option_find(table, word) && !eti_option_also(table, word, &mark))
                snprintf(unknown + strlen(unknown), sizeof unknown - strlen(unknown),
                         "%s ", word);
        is_str(unknown, "",
               "all that %s has in PyTorch or Composer is known by its name",
               signatures[i].name);
    }
}

/* ---- recipes ---- */

#define LAYERS(text)                                                                   \
    "max_duration: 5ep\n"                                                              \
    "train_data: {name: fashion_mnist, batch_size: 100}\n"                             \
    "model:\n"                                                                         \
    "  name: layers\n"                                                                 \
    "  layers:\n"                                                                      \
    "    - " text "\n"
#define COSINE(text) LEAST "scheduler: {name: cosine, " text "}\n"

static void
test_stored(void)
{
    parse(COSINE("T_max: 4ep"));
    is_str(line_of("scheduler.0.t_max"), "scheduler.0.t_max = 4ep  (recipe.yaml:4:34)",
           "a key by PyTorch's name is stored by ours, with its place");
    parse(LAYERS("conv2d: {out_channels: 8, kernel_size: 5, bias: true}"));
    is_str(line_of("model.layers"),
           "model.layers = [{conv2d: {out: 8, kernel: 5, no_bias: false}}]  "
           "(recipe.yaml:6:5)",
           "so are those of layers, and `bias: true` as what it is the opposite of");
    parse(LAYERS("layer_norm: {normalized_shape: 8, elementwise_affine: false}"));
    is_str(line_of("model.layers"),
           "model.layers = [{layer_norm: {features: 8, no_affine: true}}]  "
           "(recipe.yaml:6:5)",
           "`elementwise_affine: false` as well");
    parse(LAYERS("Conv2d: {out_channels: 8}\n    - ReLU"));
    is_str(line_of("model.layers"),
           "model.layers = [{conv2d: {out: 8}}, relu]  (recipe.yaml:6:5)",
           "layers by PyTorch's names, with options or without, have ours");
    static const char *const nested[][2] = {
        {"residual: [ReLU, Conv2d: {out_channels: 1}]",
         "[{residual: [relu, {conv2d: {out: 1}}]}]"},
        {"residual: {layers: [ReLU, ReLU], shortcut: [Conv2d: {kernel_size: 1, "
         "out_channels: 1, bias: false}, Identity]}",
         "[{residual: {layers: [relu, relu], shortcut: [{conv2d: {kernel: 1, out: 1, "
         "no_bias: true}}, identity]}}]"},
        {"repeat: {times: 2, layers: [ReLU, {repeat: {times: 3, layers: [Identity]}}]}",
         "[{repeat: {times: 2, layers: [relu, {repeat: {times: 3, layers: "
         "[identity]}}]}}]"},
        {"{Conv2d: {out_channels: 1}, as: low}\n    - {ReLU: , from: low}",
         "[{conv2d: {out: 1}, as: low}, {relu: null, from: low}]"},
    };
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        char text[1024], want[512];
        snprintf(text, sizeof text, LAYERS("%s"), nested[i][0]);
        snprintf(want, sizeof want, "model.layers = %s  (recipe.yaml:6:5)",
                 nested[i][1]);
        parse(text);
        is_str(line_of("model.layers"), want, "also within %.8s", nested[i][0]);
    }
    parse("max_duration: 5ep\ntrain_data: {name: fashion_mnist, batch_size: 100}\n"
          "model: {name: layers, blocks: {unit: [Conv2d: {out_channels: $out}]}, "
          "layers: [unit: {out: 2}]}\n");
    is_str(line_of("model.blocks"),
           "model.blocks = {unit: [{conv2d: {out: \"$out\"}}]}  (recipe.yaml:3:31)",
           "and in the list of a block");
    refuses(LAYERS("conv2d: {out: 8, bias: 3}"),
            "error E1203: recipe.yaml:6:30: model.layers.0.conv2d.no_bias: expected "
            "true or false, got 3");
}

static void
test_both(void)
{
    refuses(COSINE("t_max: 4ep, T_max: 5ep"),
            "error E1204: recipe.yaml:4:39: scheduler: 'T_max' is another name of "
            "'t_max', which 't_max' sets at 4:27");
    refuses(COSINE("T_max: 5ep, t_max: 4ep"),
            "error E1204: recipe.yaml:4:27: scheduler: 'T_max' is another name of "
            "'t_max', which 't_max' sets at 4:39");
    const struct et_override later = {ET_OVERRIDE_SET, "scheduler.T_max=6ep"};
    parse_with(COSINE("t_max: 4ep"), &later, 1, NULL);
    is_str(line_of("scheduler.0.t_max"),
           "scheduler.0.t_max = 6ep  (command line scheduler.T_max=6ep)",
           "on the command line it replaces what the file says by our name");
    const struct et_override ours = {ET_OVERRIDE_SET, "scheduler.t_max=7ep"};
    parse_with(COSINE("T_max: 4ep, alpha_f: 0.1"), &ours, 1, NULL);
    is_str(line_of("scheduler.0.t_max"),
           "scheduler.0.t_max = 7ep  (command line scheduler.t_max=7ep)",
           "and ours there what the file says by theirs");
    is_str(line_of("scheduler.0.alpha_f"),
           "scheduler.0.alpha_f = 0.1  "
           "(recipe.yaml:4:48)",
           "the keys behind it stay");
    const char *const variables[] = {"ETUDE_SET_scheduler__T_max=8ep", NULL};
    parse_with(COSINE("t_max: 4ep"), NULL, 0, variables);
    is_str(line_of("scheduler.0.t_max"),
           "scheduler.0.t_max = 8ep  (environment ETUDE_SET_scheduler__T_max)",
           "so does a variable");
}

static void
test_suggested(void)
{
    refuses(COSINE("T_maxx: 4ep"), "error E1205: recipe.yaml:4:27: scheduler: unknown "
                                   "key 'T_maxx' (did you mean 'T_max'?)");
    refuses(COSINE("eta_min: 0.1"),
            "error E1205: recipe.yaml:4:27: scheduler: unknown "
            "key 'eta_min' (did you mean 'alpha_f'?)\n  hint: multiplier at t_max");
}

/* Compose changes a value where it stands, whatever it is called there. */
static void
test_edited(void)
{
    static const char text[] = COSINE("T_max: 4ep, alpha_f: 0");
    const struct eti_edit edit = {
        .kind = ETI_EDIT_SET,
        .path = "scheduler.t_max",
        .value = "6ep",
        .is_recipe = true,
    };
    char *now = NULL;
    if (eti_yaml_edit(cx, text, strlen(text), "r.yaml", &edit, &errors, &now, NULL) !=
        ET_OK)
        bail("%s", et_error_get(cx)->message);
    is_str(now, COSINE("T_max: 6ep, alpha_f: 0"),
           "an edit by our name changes the value that has PyTorch's");
    et_free(cx, now);
}

/* ---- single options, and what people read ---- */

static void
test_single(void)
{
    const struct et_option *table = et_conv2d_class.info.options;
    struct et_conv2d_options o = {0};
    char buf[128];
    if (et_options_init(cx, table, &o) != ET_OK)
        bail("no options");
    ok(et_options_set(cx, table, &o, "kernel_size", "7") == ET_OK && o.kernel == 7,
       "one option can be set by the name that PyTorch has for it");
    ok(et_options_set(cx, table, &o, "bias", "false") == ET_OK && o.no_bias,
       "and one by its opposite");
    const struct et_option *row = eti_option_find(table, "kernel");
    is_str(et_option_other_names(row, buf, sizeof buf), "kernel_size",
           "what else an option is called can be shown");
    row = eti_option_find(table, "no_bias");
    is_str(et_option_other_names(row, buf, sizeof buf), "bias, its opposite",
           "as can what its opposite is called");
    row = eti_option_find(table_of(ET_KIND_SCHEDULER, "cosine"), "alpha_f");
    is_str(et_option_other_names(row, buf, sizeof buf), "",
           "what is only alike is not shown");
    et_options_release(table, &o);
}

/* What others call the keys of a recipe, and what they are told that we do. */
static void
test_keys_of_others(void)
{
    static const char *const rows[][2] = {
        {"data", "train_data"},
        {"train_dataset", "train_data"},
        {"train_dataloader", "train_data"},
        {"train_loader", "train_data"},
        {"dataloader", "train_data"},
        {"dataset", "train_data"},
        {"val_data", "eval_data"},
        {"test_data", "eval_data"},
        {"val_dataset", "eval_data"},
        {"eval_dataset", "eval_data"},
        {"eval_dataloader", "eval_data"},
        {"eval_loader", "eval_data"},
        {"eval_loaders", "eval_data"},
        {"evaluators", "eval_data"},
        {"train_batch_size", "train_data.batch_size"},
        {"global_train_batch_size", "train_data.batch_size"},
        {"batch_size", "train_data.batch_size"},
        {"eval_batch_size", "eval_data.batch_size"},
        {"device_eval_batch_size", "eval_data.batch_size"},
        {"eval_subset_num_batches", "eval_data.subset_num_batches"},
        {"train_subset_num_batches", "train_data.subset_num_batches"},
        {"validate_every_n_epochs", "eval_interval"},
        {"validate_every_n_batches", "eval_interval"},
        {"epochs", "max_duration"},
        {"max_epochs", "max_duration"},
        {"num_epochs", "max_duration"},
        {"num_train_epochs", "max_duration"},
        {"max_steps", "max_duration"},
        {"network", "model"},
        {"optimizers", "optimizer"},
        {"schedulers", "scheduler"},
        {"lr_scheduler", "scheduler"},
        {"lr", "optimizer.lr"},
        {"learning_rate", "optimizer.lr"},
        {"weight_decay", "optimizer.weight_decay"},
        {"device_train_microbatch_size", "microbatch_size"},
        {"save_interval", "checkpoint.interval"},
        {"save_num_checkpoints_to_keep", "checkpoint.keep"},
        {"save_filename", "checkpoint.name"},
        {"save_weights_only", "checkpoint.weights_only"},
        {"save_ignore_keys", "checkpoint.ignore_keys"},
        {"save_latest_filename", "checkpoint.latest"},
        {"save_folder", "checkpoint"},
        {"load_path", "load.path"},
        {"load_weights_only", "load.weights_only"},
        {"load_strict_model_weights", "load.strict"},
        {"load_ignore_keys", "load.ignore_keys"},
        {"load_exclude_algorithms", "load.exclude_algorithms"},
        {"deterministic_mode", "deterministic"},
        {"ddp_sync_strategy", "parallel.sync"},
        {"dist_timeout", "timeout"},
        {"deepspeed_config", "parallel.zero"},
        {"fsdp_config", "parallel.zero"},
        {"log_to_console", "--progress"},
        {"progress_bar", "--progress"},
        {"autoresume", "--autoresume"},
        {"variables", "include"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128], want[160], got[2048] = "";
        snprintf(text, sizeof text, "max_duration: 1ba\n%s: 1\n", rows[i][0]);
        snprintf(want, sizeof want, "unknown key '%s' (did you mean '%s'?)", rows[i][0],
                 rows[i][1]);
        bool found = false;
        ok(parse(text) != ET_OK, "%s is no key of ours", rows[i][0]);
        for (int k = 0; k < errors.n && !found; k++)
            found =
                strstr(et_diagnostic_text(&errors.v[k], got, sizeof got), want) != NULL;
        if (!ok(found, "%s is told %s", rows[i][0], rows[i][1]))
            diag("%s", got);
    }
}

int
main(void)
{
    begin_reading();
    test_tables();
    test_offered();
    test_signatures();
    test_stored();
    test_both();
    test_suggested();
    test_edited();
    test_single();
    test_keys_of_others();
    end_reading();
    return done();
}
