/* Fuzz target of the recipe reader. With libFuzzer: clang -fsanitize=fuzzer,address
 * -DET_FUZZER on this file and the libraries. Alone it replays the seeds, and from each
 * some hundred damaged copies, which is what `make check` does.
 *
 * Whatever the bytes: no crash, nothing left allocated, and what is accepted resolves to a
 * text that is accepted. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/recipe.h"
#include "etude/rng.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int accepted;

static bool
reads(struct et_ctx *cx, const char *text, size_t size, char **resolved)
{
    static const struct et_override overrides[] = {
        {ET_OVERRIDE_SET, "optimizer.lr=.5"},
        {ET_OVERRIDE_SET, "eval_data.0.label=x"},
        {ET_OVERRIDE_ALG, "cutmix(alpha=.5)"},
        {ET_OVERRIDE_NO_ALG, "ema"},
    };
    struct et_registry registry = fake_registry();
    struct et_recipe_env env = {.registry = &registry};
    struct et_diagnostics errors = {0};
    struct et_recipe *recipe;
    et_status status = et_recipe_parse(cx, text, size, "x.yaml", overrides,
                                       resolved ? 4 : 0, &env, &recipe, &errors);
    if ((status == ET_OK) != (errors.total == 0))
        abort();
    if (status == ET_OK && resolved && et_recipe_resolved(cx, recipe, resolved) != ET_OK)
        abort();
    et_recipe_free(&recipe);
    et_error_clear(cx);
    return status == ET_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    char *resolved = NULL;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    if (reads(cx, (const char *)data, size, &resolved)) {
        accepted++;
        if (!reads(cx, resolved, strlen(resolved), NULL))
            abort();
    }
    et_free(cx, resolved);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    if (stats.live)
        abort();
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
enum { LARGEST = 64 << 10, COPIES = 200 };

/* Changes a few bytes: another value, an indicator of YAML, or a piece moved. */
static size_t
damage(struct et_rng *r, uint8_t *data, size_t size)
{
    static const char indicators[] = "[]{}:,-?&*!|>'\"%@`# \n\t\\~<0";
    for (uint32_t left = 1 + et_rng_below(r, 4); left && size; left--) {
        uint32_t at = et_rng_below(r, (uint32_t)size);
        switch (et_rng_below(r, 4)) {
        case 0:
            data[at] = (uint8_t)et_rng_below(r, 256);
            break;
        case 1:
            data[at] = (uint8_t)indicators[et_rng_below(r, sizeof indicators - 1)];
            break;
        case 2:
            size = at;
            break;
        default: {
            uint32_t from = et_rng_below(r, (uint32_t)size);
            size_t n = size - (from > at ? from : at);
            memmove(data + at, data + from, n < 16 ? n : 16);
        }
        }
    }
    return size;
}

static void
replay(const char *folder, const char *name)
{
    static uint8_t seed[LARGEST], data[LARGEST];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        bail("cannot read %s", path);
    size_t size = fread(seed, 1, sizeof seed, f);
    fclose(f);
    LLVMFuzzerTestOneInput(seed, size);
    struct et_rng r = et_rng_at(17, ET_RNG_SELECT, size);
    for (int i = 0; i < COPIES; i++) {
        memcpy(data, seed, size);
        LLVMFuzzerTestOneInput(data, damage(&r, data, size));
    }
    ok(true, "%s and %d damaged copies are read or refused", name, COPIES);
}

int
main(void)
{
    char folder[2048];
    const char *root = getenv("ET_SRCDIR");
    snprintf(folder, sizeof folder, "%s/t/fuzz/recipe-seeds", root ? root : ".");
    DIR *dir = opendir(folder);
    if (!dir)
        bail("no folder %s", folder);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            replay(folder, e->d_name);
    closedir(dir);
    ok(accepted > 10, "some damaged copies are still recipes (%d)", accepted);
    return done();
}
#endif
