/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning from a checkpoint: which one is taken, what is said about the others, what
 * must fit, and what may be left out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/algorithms/fixture.h"
#include "t/fault/fixture.h"

static char dir[512], warnings[1 << 16];

static void
keep_warning(void *data, enum et_log_level level, const char *text)
{
    size_t used = strlen(warnings);
    (void)data;
    if (level >= ET_LOG_WARN)
        snprintf(warnings + used, sizeof warnings - used, "%s\n", text);
}

/* Trains six batches of SETUP from the start and saves at 2, 4 and 6; digests of the
 * three states in DIGEST, which may be NULL. */
static void
make_three(struct et_ctx *cx, const struct saving_setup *setup, uint64_t *digest)
{
    const struct et_checkpoint_config to = saves_to(dir, -1);
    struct saving_setup saving = *setup;
    struct saving_run s;
    et_status status;
    saving.checkpoint = &to;
    remove_tree(dir);
    if (!saving_open(&s, cx, &saving, &status))
        bail("%s", take_error(cx));
    for (int i = 0; i < 3; i++) {
        saving_train(&s, 2);
        if (digest)
            digest[i] = saving_digest(&s);
    }
    saving_close(&s);
    warnings[0] = '\0';
}

static void
damage(int64_t step, const char *file)
{
    char name[ETI_STEP_NAME];
    size_t n;
    const char *path = path_to(path_to(dir, eti_step_name(step, name)), file);
    char *bytes = read_whole(path, &n);
    bytes[n - 1] ^= 1;
    write_whole(path, bytes, n);
    free(bytes);
}

/* Opens a run of SETUP from FROM, notes where it stands, and closes it. -1: refused;
 * the error stands. */
static int64_t
begin_from(struct et_ctx *cx, struct saving_setup setup,
           const struct et_load_config *from, uint64_t *digest)
{
    struct saving_run s;
    et_status status;
    setup.load = from;
    warnings[0] = '\0';
    if (!saving_open(&s, cx, &setup, &status))
        return -1;
    int64_t batch = s.r.state->timestamp.batch;
    if (digest)
        *digest = saving_digest(&s);
    saving_close(&s);
    return batch;
}

static const struct saving_setup plain = {0};

static void
test_which(struct et_ctx *cx)
{
    uint64_t saved[3], got;
    struct et_load_config from = {.directory = dir};
    make_three(cx, &plain, saved);
    is_int(begin_from(cx, plain, &from, &got), 6, "the newest is taken");
    ok(got == saved[2], "all of it");
    from.name = "step-000000000004";
    is_int(begin_from(cx, plain, &from, &got), 4, "or the one that is named");
    ok(got == saved[1] && count_names(dir, "step-") == 3,
       "and nothing else is touched");
    from.set_aside = true;
    is_int(begin_from(cx, plain, &from, NULL), 4, "a run that goes on from there");
    ok(count_names(dir, "step-") == 2 && count_names(dir, ".old-000000000006-") == 1,
       "leaves what came later behind, under another name");
    char was[sizeof dir + 32], is[sizeof dir + 32];
    make_three(cx, &plain, saved);
    snprintf(was, sizeof was, "%s/step-000000000006", dir);
    snprintf(is, sizeof is, "%s/step-000000000005", dir);
    if (rename(was, is) != 0)
        bail("cannot rename %s", was);
    is_int(begin_from(cx, plain, &from, NULL), 4, "one that goes on once more");
    is_int(count_names(dir, ".old-000000000005-"), 1,
           "leaves what came right behind, too");
    from.name = "step-000000000003";
    is_int(begin_from(cx, plain, &from, NULL), -1, "one that is not there");
    is_int(et_error_get(cx)->status, ET_ENOENT, "is missing");
    et_error_clear(cx);

    make_three(cx, &plain, saved);
    damage(6, "optim-00000.safetensors");
    from = (struct et_load_config){.directory = dir};
    is_int(begin_from(cx, plain, &from, &got), 4, "after a damaged one the next older");
    ok(got == saved[1], "is taken whole");
    is_str(warnings,
           "step-000000000006: optim-00000: digest mismatch; using step-000000000004\n",
           "which is said");
    is_int(count_names(dir, "step-"), 3, "who only looks moves nothing");
    from.set_aside = true;
    is_int(begin_from(cx, plain, &from, NULL), 4, "who goes on");
    ok(count_names(dir, "step-") == 2 && count_names(dir, ".bad-000000000006-") == 1,
       "puts the damaged one aside and keeps it");
    damage(4, "MANIFEST");
    damage(2, "model-00000.safetensors");
    from.name = "step-000000000002";
    is_int(begin_from(cx, plain, &from, NULL), -1, "one that is named and damaged");
    is_str(take_error(cx), "step-000000000002: model-00000: digest mismatch",
           "is refused, and no other taken");
    is_int(count_names(dir, "step-"), 2, "nor moved");
    from.name = NULL;
    is_int(begin_from(cx, plain, &from, NULL), -1, "where none is whole");
    ok(et_error_get(cx)->status == ET_EFORMAT &&
           strstr(et_error_get(cx)->message, "no valid checkpoint under ") &&
           strstr(et_error_get(cx)->message,
                  ": step-000000000002: model-00000: digest mismatch"),
       "the run does not begin afresh");
    et_error_clear(cx);
    ok(count_names(dir, ".bad-") == 1 && count_names(dir, "step-") == 2,
       "those that might have been taken stay where they are");
    is_int(begin_from(cx, plain, &from, NULL), -1, "so it does not at the next try");
    ok(et_error_get(cx)->status == ET_EFORMAT, "for the same reason");
    et_error_clear(cx);
    for (int step = 2; step <= 4; step += 2)
        is_int(eti_store_set_aside(cx, dir, step, "bad"), ET_OK, "one goes by hand");
    make_folder(path_to(dir, ".tmp-000000000008-0000000000000001"));
    make_folder(path_to(dir, ".tmp-000000000008-0000000000000002"));
    is_int(begin_from(cx, plain, &from, NULL), -1,
           "nor where there are only unfinished");
    char want[600];
    snprintf(want, sizeof want, "no valid checkpoint under %s (2 incomplete ignored)",
             dir);
    is_str(take_error(cx), want, "which is said");
    remove_tree(dir);
    is_int(begin_from(cx, plain, &from, NULL), -1, "nor where there is no folder");
    et_error_clear(cx);
}

/* A checkpoint that is whole and does not fit is no reason to move any. */
static void
test_fits(struct et_ctx *cx)
{
    struct et_load_config from = {.directory = dir, .set_aside = true};
    struct saving_setup other = {.hidden = "9"};
    make_three(cx, &plain, NULL);
    is_int(begin_from(cx, other, &from, NULL), -1, "another model");
    is_str(
        take_error(cx),
        "step-000000000006: 'model/fc1.weight' is f32[8,48], the run wants f32[9,48]",
        "is refused with the shapes");
    other = (struct saving_setup){.n = 12};
    is_int(begin_from(cx, other, &from, NULL), -1, "other data");
    const char *why = take_error(cx);
    ok(strstr(why, "the training data are 12 samples an epoch, batches f32[4,1,6,8], "
                   "fingerprint ") == why &&
           strstr(why, "; where step-000000000006 was saved they were 28 samples an "
                       "epoch, batches f32[4,1,6,8], fingerprint "),
       "likewise: %s", why);
    from.recipe = "1234";
    is_int(begin_from(cx, plain, &from, NULL), -1, "another recipe");
    is_str(take_error(cx),
           "step-000000000006 is of another recipe: resume cannot change it, rerun can",
           "likewise");
    from.recipe = NULL;
    reseal(dir, 6, "\"format\": 1", "\"format\": 9");
    is_int(begin_from(cx, plain, &from, NULL), -1, "one of a later version");
    is_int(et_error_get(cx)->status, ET_ENOTSUP, "is refused, and no older one taken");
    et_error_clear(cx);
    ok(count_names(dir, "step-") == 3 && count_names(dir, ".") == 0,
       "nothing was moved");
}

static void
test_weights(struct et_ctx *cx)
{
    struct et_load_config from = {.directory = dir, .weights_only = true};
    struct saving_run s;
    et_status status;
    float a[8], b[8];
    make_three(cx, &plain, NULL);
    is_int(begin_from(cx, plain, &from, NULL), 0,
           "weights alone: training begins at 0");
    is_int(begin_from(cx, (struct saving_setup){.hidden = "9"}, &from, NULL), -1,
           "they must fit");
    et_error_clear(cx);
    from.lenient = true;
    is_int(begin_from(cx, (struct saving_setup){.hidden = "9"}, &from, NULL), 0,
           "unless that is said not to matter");
    ok(strstr(warnings,
              "'model/fc1.weight' is f32[8,48], the model wants f32[9,48]: it "
              "stays\n"),
       "each that stays is named");
    is_int(begin_from(cx, (struct saving_setup){.model = "resnet8"}, &from, NULL), 0,
           "also a model of another kind");
    ok(strstr(warnings, "is missing, the model wants") &&
           strstr(warnings, "step-000000000006: 'fc1.weight' is not in the model\n"),
       "with what either side lacks");
    from.lenient = false;
    is_int(begin_from(cx, (struct saving_setup){.model = "resnet8"}, &from, NULL), -1,
           "which is otherwise refused");
    et_error_clear(cx);

    /* A checkpoint of weights alone. */
    struct et_checkpoint_config to = saves_to(dir, -1);
    const struct saving_setup saving = {.checkpoint = &to};
    to.weights_only = true;
    remove_tree(dir);
    if (!saving_open(&s, cx, &saving, &status))
        bail("%s", take_error(cx));
    saving_train(&s, 2);
    struct et_tensor t = {
        .desc = {ET_F32, 1, {8}, {1}},
        .storage = s.r.state->params->values->storage,
    };
    need(cx, et_tensor_read(cx, &t, a, sizeof a));
    saving_close(&s);
    ok(count_names(dir, "step-") == 1 &&
           count_names(path_to(dir, "step-000000000002"), "") == 2,
       "weights_only: the model's file and MANIFEST");
    from.weights_only = false;
    is_int(begin_from(cx, plain, &from, NULL), -1, "no run goes on from it");
    is_str(take_error(cx),
           "step-000000000002 holds weights only: load it with load.weights_only",
           "which is said");
    from.weights_only = true;
    struct saving_setup loading = {.load = &from};
    if (!saving_open(&s, cx, &loading, &status))
        bail("%s", take_error(cx));
    t.storage = s.r.state->params->values->storage;
    need(cx, et_tensor_read(cx, &t, b, sizeof b));
    saving_close(&s);
    ok(memcmp(a, b, sizeof a) == 0, "its weights are loaded");
}

/* Is anything of the optimizer's first moment not 0? */
static bool
has_momentum(struct et_ctx *cx, const struct et_load_config *from)
{
    const struct saving_setup setup = {.load = from};
    struct saving_run s;
    et_status status;
    float v[64];
    bool any = false;
    warnings[0] = '\0';
    if (!saving_open(&s, cx, &setup, &status))
        bail("%s", take_error(cx));
    struct et_tensor t = {
        .desc = {ET_F32, 1, {64}, {1}},
        .storage = s.r.state->params->moment[0]->storage,
        .offset = s.r.state->params->moment[0]->offset,
    };
    need(cx, et_tensor_read(cx, &t, v, sizeof v));
    for (int i = 0; i < 64; i++)
        any |= v[i] != 0;
    saving_close(&s);
    return any;
}

static void
test_ignore(struct et_ctx *cx)
{
    static const char *const rows[][2] = {
        {"optimizer", "a place"},
        {"optimizer/*", "a pattern"},
        {"state/optimizer", "a place as Composer writes it"},
        {"*/momentum_buffer", "a part of a path"},
        {"optimizer/*/fc?.*", "single values"},
    };
    struct et_load_config from = {.directory = dir};
    make_three(cx, &plain, NULL);
    ok(has_momentum(cx, &from), "a run goes on with its momentum");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const ignore[] = {rows[i][0], NULL};
        from.ignore = ignore;
        ok(!has_momentum(cx, &from), "ignored: %s, '%s'", rows[i][1], rows[i][0]);
        ok(!warnings[0], "without a word");
    }
    const char *const nothing[] = {"optimiser", NULL};
    from.ignore = nothing;
    ok(has_momentum(cx, &from), "a pattern that fits nothing leaves nothing out");
    is_str(warnings, "load.ignore_keys: nothing is called 'optimiser'\n",
           "and is named");
}

/* ---- algorithms ---- */

static int64_t
begin_with(struct et_ctx *cx, const char *name, const char *const *options,
           const struct et_load_config *from, int *n_algorithms)
{
    struct saving_setup setup = {.model = "resnet8", .load = from};
    struct saving_run s;
    et_status status;
    struct et_algorithm *a = name ? algorithm(cx, name, options) : NULL;
    setup.algorithms = &a;
    setup.n_algorithms = a != NULL;
    warnings[0] = '\0';
    int64_t batch = -1;
    *n_algorithms = 0;
    if (saving_open(&s, cx, &setup, &status)) {
        batch = s.r.state->timestamp.batch;
        *n_algorithms = s.r.state->n_algorithms;
        saving_close(&s);
    }
    et_algorithm_free(&a);
    return batch;
}

static void
test_algorithms(struct et_ctx *cx)
{
    struct et_checkpoint_config to = saves_to(dir, 1);
    struct et_load_config from = {.directory = dir};
    struct et_algorithm *a = algorithm(cx, "blurpool", OPTIONS("min_channels", "1"));
    const struct saving_setup setup = {
        .checkpoint = &to,
        .model = "resnet8",
        .algorithms = &a,
        .n_algorithms = 1,
    };
    struct saving_run s;
    et_status status;
    int n;
    remove_tree(dir);
    if (!saving_open(&s, cx, &setup, &status))
        bail("%s", take_error(cx));
    saving_train(&s, 1);
    saving_close(&s);
    et_algorithm_free(&a);

    is_int(begin_with(cx, "blurpool", OPTIONS("min_channels", "1"), &from, &n), 1,
           "a run with the algorithm goes on");
    is_str(warnings, "", "without a word");
    is_int(begin_with(cx, "blurpool", OPTIONS("min_channels", "2"), &from, &n), 1,
           "with other options too");
    is_str(warnings,
           "blurpool.min_channels is 2 here and was 1 where the checkpoint was saved\n",
           "which are named");
    is_int(begin_with(cx, "blurpool",
                      OPTIONS("min_channels", "1", "blur_first", "false"), &from, &n),
           -1, "but not where its filters are of other channels then");
    ok(strstr(take_error(cx), ".blur_filter' is f32[16,1,3,3], the run wants "
                              "f32[32,1,3,3]"),
       "which is said");
    is_int(begin_with(cx, NULL, NULL, &from, &n), 1, "one without it gets it");
    ok(n == 1 && strstr(warnings, "blurpool was added: the checkpoint's model was made "
                                  "with it\n"),
       "and is told");
    is_int(begin_with(cx, "label_smoothing", OPTIONS(), &from, &n), 1, "beside others");
    is_int(n, 2, "that it has");
    is_int(begin_with(cx, "ema", OPTIONS(), &from, &n), -1,
           "where another has acted that must come later, it is refused");
    is_str(
        take_error(cx),
        "the checkpoint's model was changed by blurpool, which acts before ema: list "
        "it under algorithms, or under load.exclude_algorithms",
        "with what to do");
    static const char *const exclude[] = {"alibi", "blurpool", NULL};
    from.exclude = exclude;
    (void)begin_with(cx, NULL, NULL, &from, &n);
    et_error_clear(cx);
    ok(!strstr(warnings, "was added"), "what is excluded is not added");
    from.exclude = NULL;
    reseal(dir, 1, "\"blur_first\"", "\"blur_firsts\"");
    (void)begin_with(cx, NULL, NULL, &from, &n);
    et_error_clear(cx);
    ok(strstr(warnings, "blurpool of the checkpoint is left out: "),
       "nor one whose options are not known here");
    reseal(dir, 1, "\"name\": \"blurpool\"", "\"name\": \"blur\"");
    (void)begin_with(cx, NULL, NULL, &from, &n);
    et_error_clear(cx);
    is_int(n, 0, "nor one that is not known at all");
}

/* A checkpoint of a run of resnet8 with the algorithm NAME alone. */
static void
save_with(struct et_ctx *cx, const char *name)
{
    struct et_checkpoint_config to = saves_to(dir, 1);
    struct et_algorithm *a = algorithm(cx, name, OPTIONS());
    const struct saving_setup setup = {
        .checkpoint = &to,
        .model = "resnet8",
        .algorithms = &a,
        .n_algorithms = 1,
    };
    struct saving_run s;
    et_status status;
    remove_tree(dir);
    if (!saving_open(&s, cx, &setup, &status))
        bail("%s", take_error(cx));
    saving_train(&s, 1);
    saving_close(&s);
    et_algorithm_free(&a);
}

/* Those that had joined come back by themselves, others if the model was made with
 * them. */
static void
test_joined(struct et_ctx *cx)
{
    static const char *const exclude[] = {"label_smoothing", NULL};
    struct et_load_config from = {.directory = dir};
    int n;
    save_with(cx, "label_smoothing");
    is_int(begin_with(cx, NULL, NULL, &from, &n), 1, "a run goes on without one");
    is_int(n, 0, "that changes no model, and does not get it");
    reseal(dir, 1, "\"name\": \"label_smoothing\"",
           "\"joined\": true, \"name\": \"label_smoothing\"");
    is_int(begin_with(cx, NULL, NULL, &from, &n), 1, "one with one that had joined");
    is_int(n, 1, "has it");
    is_str(warnings, "", "without a word");
    is_int(begin_with(cx, "label_smoothing", OPTIONS(), &from, &n), 1,
           "one that has it already");
    is_int(n, 1, "has it once");
    from.exclude = exclude;
    is_int(begin_with(cx, NULL, NULL, &from, &n), 1, "where it is excluded");
    is_int(n, 0, "it stays away");
    from.exclude = NULL;
    from.weights_only = true;
    is_int(begin_with(cx, NULL, NULL, &from, &n), 0, "who takes the weights alone");
    is_int(n, 0, "takes what had joined no more than the rest");
    is_str(warnings, "", "and is not told of it");

    save_with(cx, "blurpool");
    reseal(dir, 1, "\"min_channels\"", "\"min_channelz\"");
    from.weights_only = false;
    (void)begin_with(cx, "blurpool", OPTIONS(), &from, &n);
    ok(strstr(warnings, "blurpool.min_channels is 16 here and was not there where the "
                        "checkpoint was saved"),
       "an option that was not there then is named: %s", warnings);
    from.lenient = from.weights_only = true;
    is_int(begin_with(cx, NULL, NULL, &from, &n), 0,
           "who is content with less goes on without one that is not known here");
    is_int(et_error_get(cx)->status, ET_OK, "and no error is left behind");
    reseal(dir, 1, "\"min_channelz\"", "\"min_channels\"");
    reseal(dir, 1, "\"name\": \"blurpool\"",
           "\"joined\": true, \"name\": \"blurpool\"");
    from.weights_only = true;
    (void)begin_with(cx, NULL, NULL, &from, &n);
    et_error_clear(cx);
    ok(n == 1 && strstr(warnings, "blurpool was added: it had joined the run that the "
                                  "checkpoint is of"),
       "weights that were made with one that had joined come with it");
}

/* Opens a run of SETUP from FROM, which is refused with STATUS and CODE. */
static void
is_refused(struct et_ctx *cx, struct saving_setup setup,
           const struct et_load_config *from, et_status status, int code,
           const char *what)
{
    is_int(begin_from(cx, setup, from, NULL), -1, "%s is refused", what);
    ok(et_error_get(cx)->status == status && (int)et_error_get(cx)->code == code,
       "with the status and the code that tell so: %d, %d",
       (int)et_error_get(cx)->status, (int)et_error_get(cx)->code);
    et_error_clear(cx);
}

static struct eti_seams seams;
static int broken; /* files of models that the disk cannot read */

static int
open_or_not(int folder, const char *path, int flags, mode_t mode)
{
    if (!strstr(path, "model-00000") || broken == 0)
        return eti_system.file.open(folder, path, flags, mode);
    broken--;
    errno = EIO;
    return -1;
}

/* Why a checkpoint will not do, for programs. */
static void
test_reasons(struct et_ctx *cx)
{
    struct et_load_config from = {.directory = dir};
    char name[ETI_STEP_NAME];
    remove_tree(dir);
    is_refused(cx, plain, &from, ET_ENOENT, ET_E_NO_CHECKPOINT, "what is not there");
    make_three(cx, &plain, NULL);
    is_refused(cx, (struct saving_setup){.n = 12}, &from, ET_EINVAL, ET_E_CHECKPOINT,
               "other data");
    is_refused(cx, (struct saving_setup){.hidden = "9"}, &from, ET_EFORMAT,
               ET_E_CHECKPOINT, "another model");
    seams = eti_system;
    seams.file.open = open_or_not;
    eti_ctx_set_seams(cx, &seams);
    broken = 1;
    is_int(begin_from(cx, plain, &from, NULL), 4,
           "after one that cannot be read the next older is taken");
    broken = 100;
    from.name = "step-000000000006";
    is_refused(cx, plain, &from, ET_EIO, ET_E_CHECKPOINT, "one that cannot be read");
    broken = 0;
    from.name = NULL;
    for (int64_t step = 4; step > 0; step -= 2) {
        reseal(dir, step, "\"world_size\": 1", "\"world_size\": 2");
        from.name = eti_step_name(step, name);
        is_int(begin_from(cx, plain, &from, NULL), -1, "one of two ranks is refused");
        ok(strstr(take_error(cx), "saved with 2 ranks, started with 1: use -n 2"),
           "with what to do");
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    et_ctx_set_log(cx, ET_LOG_WARN, keep_warning, NULL);
    int before = count_descriptors();
    test_which(cx);
    test_fits(cx);
    test_weights(cx);
    test_ignore(cx);
    test_algorithms(cx);
    test_joined(cx);
    test_reasons(cx);
    remove_tree(dir);
    is_int(count_descriptors(), before, "no descriptor is left");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nor memory");
    et_ctx_free(&cx);
    return done();
}
