/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of files: texts with labels, and what is asked and answered; which file of a
 * folder is whose. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/data/instruction_rows.h"
#include "core/data/labelled_rows.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char dir[] = "/tmp/etude-lines-XXXXXX";

/* What was read, as text. */
static char got[1024];

static void
put(const char *name, const char *text, char path[512])
{
    snprintf(path, 512, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

static void
note(const char *text, size_t n)
{
    size_t used = strlen(got);
    for (size_t i = 0; i < n && used + 2 < sizeof got; i++)
        got[used++] = text[i] ? text[i] : '0';
    got[used] = '\0';
}

/* Is the error that stands WANT, whose place is that of a file? */
static void
says(const char *want, const char *name)
{
    const char *why = et_error_get(cx)->message, *file = strrchr(why, '/');
    is_str(file ? file + 1 : why, want, "%s", name);
    et_error_clear(cx);
}

/* ---- labelled ---- */

static et_status
note_row(void *data, const struct eti_labelled_row *r)
{
    const struct eti_text_cell *cell[] = {&r->text, &r->text2, &r->label};
    char line[32];
    (void)data;
    note(line, (size_t)snprintf(line, sizeof line, "%d:", (int)r->line));
    for (int i = 0; i < 3; i++) {
        note(cell[i]->text ? cell[i]->text : "-", cell[i]->text ? cell[i]->n : 1);
        note(i < 2 ? "|" : "\n", 1);
    }
    return ET_OK;
}

static void
test_labelled(void)
{
    static const struct {
        const char *says, *name, *text, *text2, *want, *error;
    } rows[] = {
        {"columns are found by their names, in any order, and lines by their numbers",
         "a.tsv", "label\tb\tother\ta\r\n1\tx\t-\tyy\r\n\n\t\t\t\n22\tp\"q\tr\ts", "b",
         "2:yy|x|1\n4:||\n5:s|p\"q|22\n", ""},
        {"a second text is none where none is asked for", "a.tsv",
         "a\tlabel\tb\nx\t1\ty\n", NULL, "2:x|-|1\n", ""},
        {"a line with a cell less is refused behind those that are whole", "a.tsv",
         "label\ta\tb\n1\tx\ty\n2\tx\n", "b", "2:x|y|1\n",
         "a.tsv:3: no cell in column 3, 'b'"},
        {"so is a file without a column", "a.tsv", "label\tb\n1\tx\n", "b", "",
         "a.tsv:1: no column 'a'"},
        {"a name that begins another is not that", "a.tsv", "label\tab\n1\tx\n", NULL,
         "", "a.tsv:1: no column 'a'"},
        {"lines of JSON have members, whose numbers are whole or not", "a.jsonl",
         "{\"label\":1234567,\"b\":\"y\",\"a\":\"x\"}\r\n\n"
         "{\"a\":\"u\\u0000v\",\"b\":\"\",\"label\":\"l m\"}\n"
         "{\"a\":\"\\u00e9\",\"b\":\"w\",\"label\":-0.12345678}",
         "b", "1:x|y|1234567\n3:u0v||l m\n4:\xc3\xa9|w|-0.12345678\n", ""},
        {"files called ndjson are JSON too", "a.ndjson", "{\"a\":\"x\",\"label\":2}\n",
         NULL, "1:x|-|2\n", ""},
        {"a text is no number", "a.jsonl",
         "{\"a\":\"x\",\"label\":0}\n{\"a\":1,\"label\":0}\n", NULL, "1:x|-|0\n",
         "a.jsonl:2: no text called 'a'"},
        {"a second text that is asked for is there", "a.jsonl",
         "{\"a\":\"x\",\"label\":0}\n", "b", "", "a.jsonl:1: no text called 'b'"},
        {"and a label", "a.jsonl", "\n{\"a\":\"x\"}\n", NULL, "",
         "a.jsonl:2: no label called 'label'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_row_names names = {"a", rows[i].text2, "label"};
        char path[512];
        put(rows[i].name, rows[i].text, path);
        got[0] = '\0';
        et_status s = eti_labelled_rows(cx, path, &names, note_row, NULL);
        is_str(got, rows[i].want, "%s", rows[i].says);
        ok(s == (rows[i].error[0] ? ET_EFORMAT : ET_OK), "with that status");
        says(rows[i].error, "and what is said of it");
        unlink(path);
    }
}

/* The first of each split's files that is there. */
static void
test_split_files(void)
{
    static const char *const train[] = {"train.jsonl.gz", "train.tsv.gz", "train.jsonl",
                                        "train.tsv"};
    static const char *const test[] = {"test.jsonl.gz",       "test.tsv",
                                       "validation.jsonl.gz", "validation.tsv.gz",
                                       "validation.jsonl",    "validation.tsv",
                                       "dev.jsonl.gz",        "dev.tsv.gz",
                                       "dev.jsonl",           "dev.tsv"};
    char found[ETI_PATH_MAX], path[512];
    int wrong = eti_split_file(dir, ET_SPLIT_TRAIN, found) +
                eti_split_file(dir, ET_SPLIT_TEST, found);
    for (size_t i = 0; i < 4; i++) {
        put(train[i], "", path);
        wrong += !eti_split_file(dir, ET_SPLIT_TRAIN, found) || strcmp(found, path) ||
                 eti_split_file(dir, ET_SPLIT_TEST, found);
    }
    is_int(wrong, 0, "a train split is TSV or JSON, packed or not");
    for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
        put(test[i], "", path);
        bool has = eti_split_file(dir, ET_SPLIT_TEST, found);
        if (!has || strcmp(found, path) != 0)
            wrong++, diag("%s: %s", test[i], has ? found : "none");
    }
    is_int(wrong, 0, "a test split is dev, validation or test, in this order");
    for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, test[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", dir, train[i % 4]);
        unlink(path);
    }
}

/* ---- asked and answered ---- */

/* "3:(given)[learned]" */
static et_status
note_instruction(void *data, const struct eti_instruction *r)
{
    char line[32];
    (void)data;
    note(line, (size_t)snprintf(line, sizeof line, "%d:", (int)r->line));
    for (int64_t i = 0; i < r->n_parts; i++) {
        const struct eti_instruction_part *p = &r->part[i];
        note(p->is_learned ? "[" : "(", 1);
        note(r->text + p->at, p->n);
        note(p->is_learned ? "]" : ")", 1);
    }
    return ET_OK;
}

static void
test_instructions(void)
{
    static const struct {
        const char *says, *form, *text, *want, *error;
    } rows[] = {
        {"the answer is learned, and what stands behind it", "Q {p}\nA {r}.",
         "{\"p\":\"one\",\"r\":\"two\"}\n{\"r\":\"\\u00e9\",\"p\":\"\"}",
         "1:(Q one\nA )[two.]2:(Q \nA )[\xc3\xa9.]", ""},
        {"also where something is given again", "{r} {p}",
         "{\"p\":\"one\",\"r\":\"two\"}", "1:()[two one]", ""},
        {"names have letters, digits and _", "{aZ_09}{r}",
         "{\"aZ_09\":\"x\",\"r\":\"y\"}", "1:(x)[y]", ""},
        {"braces around no name stay", "{ {a b} {p}} {}{r}{",
         "{\"p\":\"x\",\"r\":\"y\"}", "1:({ {a b} x} {})[y{]", ""},
        {"lines of blanks are counted, and are no rows", "{p}{r}",
         "\n \t\r\n{\"p\":\"x\",\"r\":\"y\"}\r\n\n{\"p\":\"z\",\"r\":\"\"}\n",
         "3:(x)[y]5:(z)[]", ""},
        {"of messages those of the assistant are learned", "{r}",
         "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
         "{\"role\":\"user\",\"content\":\"u\"},"
         "{\"role\":\"assistant\",\"content\":\"a\"},"
         "{\"role\":\"tool\",\"content\":\"t\"},"
         "{\"role\":\"assistant\",\"content\":\"b\"}]}",
         "1:(<system>s;<user>u;<assistant>)[a;](<tool>t;<assistant>)[b;]", ""},
        {"messages that are no list are passed over", "{r}",
         "{\"messages\":\"m\",\"r\":\"y\"}", "1:()[y]", ""},
        {"a text that is missing is named with its line", "{p}{r}",
         "{\"p\":\"x\",\"r\":\"y\"}\n\n{\"p\":1,\"r\":\"y\"}", "1:(x)[y]",
         "f:3: no text called 'p'"},
        {"so is a message without a role", "{r}",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},{\"content\":\"v\"}]}",
         "", "f:1: message 2 has no role"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_instruction_form form = {rows[i].form, "<{role}>{content};",
                                                  "r"};
        got[0] = '\0';
        et_status s = eti_instruction_lines(cx, "f", rows[i].text, strlen(rows[i].text),
                                            &form, note_instruction, NULL);
        is_str(got, rows[i].want, "%s", rows[i].says);
        ok(s == (rows[i].error[0] ? ET_EFORMAT : ET_OK), "with that status");
        says(rows[i].error, "and what is said of it");
    }
}

static void
test_forms(void)
{
    static const struct {
        const char *text, *message, *error;
    } rows[] = {
        {"{r}", "{content}", ""},
        {"a {b} {{r}", "{role} {{content}}", ""},
        {"{rr} {r_} r {r", "{content}", "template has no {r}, which is to be learned"},
        {"{r}", "{contents} {role}", "message has no {content}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct eti_instruction_form form = {rows[i].text, rows[i].message, "r"};
        et_status s = eti_instruction_check(cx, &form);
        ok(s == (rows[i].error[0] ? ET_EINVAL : ET_OK), "'%s' and '%s' are %s",
           rows[i].text, rows[i].message, rows[i].error[0] ? "refused" : "taken");
        says(rows[i].error, "with a word about what is missing");
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir))
        bail("no context or folder");
    test_labelled();
    test_split_files();
    test_instructions();
    test_forms();
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
