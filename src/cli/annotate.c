/* annotate.c: `etude annotate`: a note among the events of a run: written by the
 * process that owns its log, or by this one where there is none. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/run/events.h"
#include "core/run/facts.h"
#include "dist/asking.h"

static const double ANSWER_SECONDS = 5;

/* One that goes on writes it itself. */
static int
pass_on(struct cli *c, const json_t *facts, const char *text)
{
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    char visible[ET_VISIBLE_MAX + 1];
    int64_t ba;
    et_visible(visible, sizeof visible, text, strlen(text));
    et_status status = etd_note(c->cx, directory, visible, ANSWER_SECONDS, &ba);
    if (status != ET_OK) {
        int code = cli_fail(c, CLI_E_BUSY, "annotate it when it has ended", "%s",
                            et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    if (c->opt.json)
        return cli_print_json(
            json_pack("{s:O?, s:I, s:f, s:s}", "name", json_object_get(facts, "name"),
                      "ba", (json_int_t)ba, "t", eti_wall(c->cx), "text", visible));
    return CLI_OK;
}

static int
add(struct cli *c, const json_t *facts, const char *text)
{
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    char visible[ET_VISIBLE_MAX + 1];
    struct eti_events_writer w;
    int64_t cut;
    et_status status = eti_events_continue(c->cx, directory, &cut, &w);
    if (status == ET_ECANCELED) {
        et_error_clear(c->cx);
        return pass_on(c, facts, text);
    }
    if (status != ET_OK)
        return cli_fail_status(
            c, status == ET_EFORMAT ? ETI_STAGE_DATA : ETI_STAGE_OUTPUT, status);
    if (cut > 0)
        et_report(c->cx, ET_LOG_WARN,
                  "the log ended in the middle of a record; its %lld bytes are cut off",
                  (long long)cut);
    et_visible(visible, sizeof visible, text, strlen(text));
    const struct et_record r = {
        .kind = ET_RECORD_ANNOTATION,
        .t = eti_wall(c->cx),
        .ep = w.last.ep,
        .ba = w.last.ba,
        .sp = w.last.sp,
        .text = visible,
    };
    eti_events_write(&w, &r);
    bool written = !w.failed && w.lost == 0;
    eti_events_end(&w);
    if (!written)
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot write %s/events.log", directory);
    cli_run_remember(c, directory);
    if (c->opt.json)
        return cli_print_json(json_pack("{s:O?, s:I, s:f, s:s}", "name",
                                        json_object_get(facts, "name"), "ba",
                                        (json_int_t)r.ba, "t", r.t, "text", visible));
    return CLI_OK;
}

int
cli_annotate(struct cli *c)
{
    int code;
    if (c->n_args != 2 || !*c->arg[1])
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "annotate takes a run and a text, in quotes if it has blanks");
    json_t *facts = cli_run_find(c, c->arg[0], &code);
    if (!facts)
        return code;
    code = eti_facts_is_alive(facts) ? pass_on(c, facts, c->arg[1])
                                     : add(c, facts, c->arg[1]);
    json_decref(facts);
    return code;
}
