/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: see fixture.h. */
#include "config.h"

#include "t/fault/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/trainer/part.h"
#include "t/tap.h"

bool
is_long(void)
{
    const char *text = getenv("ETUDE_LONG");
    return text && strcmp(text, "1") == 0;
}

/* ---- folders ---- */

const char *
path_to(const char *dir, const char *name)
{
    static char text[8][1024];
    static int next;
    char whole[1024]; /* DIR may be one of those */
    snprintf(whole, sizeof whole, "%s/%s", dir, name);
    return memcpy(text[next++ % 8], whole, sizeof whole);
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

void
remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        bail("cannot remove %s", path);
}

void
make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        bail("cannot make %s", path);
}

void *
read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0)
        bail("cannot read %s", path);
    char *bytes = malloc((size_t)st.st_size + 1);
    *n = fread(bytes, 1, (size_t)st.st_size, f);
    bytes[*n] = '\0';
    fclose(f);
    return bytes;
}

void
write_whole(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", path);
}

int
count_names(const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
             strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

int
count_descriptors(void)
{
    return count_names("/proc/self/fd", "");
}

void
reseal(const char *dir, int64_t step, const char *from, const char *to)
{
    static const char member[] = ",\n  \"digest\": \"";
    char name[ETI_STEP_NAME], digest[65];
    size_t n;
    const char *path = path_to(path_to(dir, eti_step_name(step, name)), "MANIFEST");
    char *text = read_whole(path, &n), *tail = strstr(text, member);
    char *at = strstr(text, from);
    if (!tail || !at)
        bail("%s has no %s", path, tail ? from : "digest");
    *tail = '\0';
    size_t room = n + strlen(to) + 1;
    char *out = malloc(room);
    int body =
        snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    eti_digest_text(out, (size_t)body, digest);
    int all =
        body + snprintf(out + body, room - (size_t)body, "%s%s\"\n}\n", member, digest);
    write_whole(path, out, (size_t)all);
    free(text);
    free(out);
}

/* ---- a run ---- */

struct et_checkpoint_config
saves_to(const char *dir, int64_t keep)
{
    return (struct et_checkpoint_config){
        .directory = dir,
        .only_at_end = true,
        .keep = keep,
        .run_id = "00112233445566778899aabbccddeeff",
        .incarnation = 1,
    };
}

/* In place of the fixture's MLP, which is larger than it need be. */
static void
take_small_model(struct run *r, const char *hidden)
{
    const struct et_model_class *c = et_model_class_find("mlp");
    const int64_t *shape = r->data->facts.field[ET_FIELD_X].shape;
    const struct et_model_facts facts = {
        shape[0], shape[1], shape[2], .num_classes = et_facts_classes(&r->data->facts)};
    void *options;
    et_model_free(&r->model);
    need(r->cx, et_alloc(r->cx, c->info.options_size, &options));
    need(r->cx, et_options_init(r->cx, c->info.options, options));
    need(r->cx, et_options_set(r->cx, c->info.options, options, "hidden", hidden));
    need(r->cx, et_model_new(r->cx, c, options, &facts, &r->model));
    et_options_release(c->info.options, options);
    et_free(r->cx, options);
    r->config.model = r->model;
}

void
saving_prepare(struct saving_run *s, struct et_ctx *cx,
               const struct saving_setup *setup)
{
    static const char *const momentum[] = {"momentum", "0.9", "lr", "0.01", NULL};
    s->cx = cx;
    run_prepare(&s->r, cx,
                &(struct run_setup){
                    .model = setup->model,
                    .n = setup->n ? setup->n : 28,
                    .optimizer_options = momentum,
                    .max_duration = ET_EPOCHS(100),
                    .algorithms = setup->algorithms,
                    .n_algorithms = setup->n_algorithms,
                    .grad_accum = setup->grad_accum,
                    .sink = setup->sink,
                });
    if (!setup->model)
        take_small_model(&s->r, setup->hidden ? setup->hidden : "8");
    s->r.config.checkpoint = setup->checkpoint;
    s->r.config.load = setup->load;
    s->r.config.nonfinite_action = setup->nonfinite_action;
    s->r.config.nonfinite_grace = setup->nonfinite_grace;
}

bool
saving_start(struct saving_run *s, et_status *status)
{
    struct et_ctx *cx = s->cx;
    *status = et_trainer_new(cx, &s->r.config, &s->r.trainer);
    if (*status == ET_OK) {
        s->r.state = et_trainer_state(s->r.trainer);
        return true;
    }
    saving_close(s);
    return false;
}

bool
saving_open(struct saving_run *s, struct et_ctx *cx, const struct saving_setup *setup,
            et_status *status)
{
    saving_prepare(s, cx, setup);
    return saving_start(s, status);
}

void
saving_close(struct saving_run *s)
{
    struct run *r = &s->r;
    const struct et_optimizer_class *o = r->config.optimizer;
    et_trainer_free(&r->trainer);
    et_model_free(&r->model);
    et_loader_free(&r->train);
    et_loader_free(&r->eval);
    et_dataset_close(&r->data);
    et_options_release(o->info.options, r->options);
    et_free(r->cx, r->options);
    et_device_close(&r->dev);
}

void
saving_train(struct saving_run *s, int n)
{
    need(s->cx, et_trainer_fit(s->r.trainer, ET_BATCHES(n)));
}

uint64_t
saving_digest(struct saving_run *s)
{
    struct et_archive a = {0};
    XXH3_state_t *hash = XXH3_createState();
    XXH3_64bits_reset(hash);
    eti_archive_begin(&a, s->cx);
    need(s->cx, eti_archive_trainer(s->r.trainer, &a));
    need(s->cx, eti_archive_end(&a));
    for (int64_t i = 0; i < a.n; i++) {
        /* What the clocks showed is not what was trained. */
        if (strstr(a.item[i].path, "/clocks"))
            continue;
        XXH3_64bits_update(hash, a.item[i].path, strlen(a.item[i].path));
        XXH3_64bits_update(hash, a.item[i].data, et_desc_bytes(&a.item[i].desc));
    }
    uint64_t digest = XXH3_64bits_digest(hash);
    eti_archive_release(&a);
    XXH3_freeState(hash);
    return digest;
}
