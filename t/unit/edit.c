/* Setting one value in a YAML text: what changes, what stays, what is refused. */
#include "core/recipe/edit.h"

#include <string.h>

#include "etude/ctx.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_diagnostics errors;

static et_status
set(const char *text, const char *path, const char *value, char **out)
{
    memset(&errors, 0, sizeof errors);
    return eti_yaml_set(cx, text, strlen(text), "c.yaml", path, value, &errors, out);
}

static void
becomes(const char *text, const char *path, const char *value, const char *want,
        const char *name)
{
    char *out;
    et_status status = set(text, path, value, &out);
    is_str(status == ET_OK ? out : et_error_get(cx)->message, want, "%s", name);
    et_error_clear(cx);
    et_free(cx, out);
}

static void
refuses(const char *text, const char *path, const char *value, et_status want,
        const char *part, const char *name)
{
    char *out;
    et_status status = set(text, path, value, &out);
    if (!ok(status == want && !out && strstr(et_error_get(cx)->message, part), "%s",
            name))
        diag("%s: %s", et_status_name(status), et_error_get(cx)->message);
    et_error_clear(cx);
    et_free(cx, out);
}

static void
replacing(void)
{
    becomes("# mine\ncolor: auto  # always?\nprogress: bar\n", "color", "never",
            "# mine\ncolor: never  # always?\nprogress: bar\n",
            "a value changes where it stands, comments and order stay");
    becomes("a: \"old \\\" text\" # c\n", "a", "new", "a: new # c\n",
            "a text in quotes goes with its quotes");
    becomes("a: 'it''s'\n", "a", "[1, 2]", "a: [1, 2]\n", "in single quotes too");
    becomes("ui:\n    plot: ascii   # small\n    x: 1\n", "ui.plot", "braille",
            "ui:\n    plot: braille   # small\n    x: 1\n", "so does one deeper down");
    becomes("ui: {plot: ascii, x: 1}\n", "ui.plot", "braille",
            "ui: {plot: braille, x: 1}\n", "or in flow style");
    becomes("a: [1, 2] # two\nb: 3\n", "a", "[4]", "a: [4] # two\nb: 3\n",
            "a list in flow style is replaced whole");
    becomes("a:\n  - 1\n  - 2\n# end\nb: 3\n", "a", "[4]", "a:\n  [4]\n# end\nb: 3\n",
            "one in block style too, and no comment with it");
    becomes("a: 1", "a", "2", "a: 2", "the last line may lack its end");
    becomes("a: \xc3\xa4\xc3\xb6 # \xe2\x82\xac\nb: 1\n", "b", "2",
            "a: \xc3\xa4\xc3\xb6 # \xe2\x82\xac\nb: 2\n",
            "places are counted in bytes");
    becomes("a:   # nothing\nb: 1\n", "a", "x", "a: x   # nothing\nb: 1\n",
            "an empty value is filled behind its colon");
    becomes("a: |\n  one\n  two\nb: 1\n", "b", "2", "a: |\n  one\n  two\nb: 2\n",
            "other lines are left as they are");
}

static void
inserting(void)
{
    becomes("", "a", "1", "a: 1\n", "an empty text gets its first key");
    becomes("# only this\n", "a.b", "1", "# only this\na: {b: 1}\n",
            "after comments, with what leads there");
    becomes("a: 1  # one\n", "b", "2", "a: 1  # one\nb: 2\n", "a new key comes last");
    becomes("a: 1", "b", "2", "a: 1\nb: 2", "also where the last line has no end");
    becomes("ui:\n  plot: ascii  # small\n# between\nz: 1\n", "ui.x", "true",
            "ui:\n  plot: ascii  # small\n  x: true\n# between\nz: 1\n",
            "a new key of a mapping stands with its others");
    becomes("ui: {}\n", "ui.x", "1", "ui: {x: 1}\n", "an empty mapping gets its first");
    becomes("ui: {a: 1}  # c\n", "ui.x.y", "1", "ui: {a: 1, x: {y: 1}}  # c\n",
            "in flow style before the bracket");
    becomes("ui:\nz: 1\n", "ui.x", "1", "ui: {x: 1}\nz: 1\n",
            "an empty value becomes a mapping");
    becomes("a: 1\n", "weird key: {", "1", "a: 1\n\"weird key: {\": 1\n",
            "a key that needs quotes has them");
    becomes("a: |\n  one\n", "b", "2", "a: |\n  one\nb: 2\n", "after a block of text");
}

static void
refusing(void)
{
    refuses("a: [1\n", "a", "1", ET_EINVAL, "c.yaml is not YAML",
            "a text that is no YAML");
    is_int(errors.n, 1, "whose fault is among the errors");
    refuses("a: 1\n", "a", "[", ET_EINVAL, "the value is not YAML",
            "nor a value that is none");
    refuses("a: 1\n", "a.b", "2", ET_EINVAL, "'b' cannot be set in 1",
            "a path through a number");
    refuses("x: &x {a: 1}\ny: *x\n", "y.a", "2", ET_ENOTSUP, "only an editor",
            "a place that an alias shares");
}

/* Whatever allocation fails, the text is whole or there is none. */
static void
torture(void)
{
    struct et_alloc_stats before, after;
    char *out;
    int refused = 0;
    et_alloc_get_stats(cx, &before);
    et_status status = ET_ENOMEM;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        et_alloc_fail_at(cx, k);
        status = set("a: 1\nb: {c: 2}\n", "b.c", "3", &out);
        et_alloc_fail_at(cx, 0);
        refused += status == ET_ENOMEM && !out;
        et_error_clear(cx);
    }
    ok(status == ET_OK && refused > 3, "every allocation can fail");
    et_free(cx, out);
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)after.live, (int64_t)before.live, "and leaves nothing behind");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    replacing();
    inserting();
    refusing();
    torture();
    et_ctx_free(&cx);
    return done();
}
