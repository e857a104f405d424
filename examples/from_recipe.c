/* SPDX-License-Identifier: Apache-2.0 */
/* from_recipe.c: a recipe trained by a C program, and its model asked afterwards.
 *
 * et_trainer_from_recipe makes all that `etude train` makes of the same file, its run
 * directory too, and owns it; et_checkpoint_load_model makes the model again from what
 * the run has saved, with the transforms of its recipe, so that it can be given raw
 * bytes.
 *
 *     cc from_recipe.c $(pkg-config --cflags --libs etude) -o from_recipe
 *     ./from_recipe recipe.yaml runs/mine
 *
 * Run again on the same directory, it goes on from the newest checkpoint. */
#include <etude/etude.h>

#include <stdio.h>
#include <stdlib.h>

static et_status
train(struct et_ctx *cx, const char *recipe, const char *directory)
{
    const struct et_session_options options = {.directory = directory, .resume = true};
    struct et_trainer *t;
    ET_TRY(et_trainer_from_recipe(cx, recipe, &options, NULL, &t));
    et_status status = et_trainer_fit(t, ET_TIME_UNSET);
    const struct et_state *s = et_trainer_state(t);
    int n;
    const struct et_metric_value *metric = et_state_get_eval_metrics(s, &n);
    printf("trained for %lld batches\n", (long long)et_state_get_timestamp(s)->batch);
    for (int i = 0; i < n; i++)
        printf("%s %.4f\n", metric[i].name, metric[i].value);
    et_trainer_free(&t); /* and with it device, data, model, loggers */
    return status;
}

/* The scores of a black image. */
static et_status
ask(struct et_ctx *cx, const char *directory)
{
    struct et_predictor *p;
    ET_TRY(et_checkpoint_load_model(cx, directory, NULL, NULL, &p));
    const int64_t *shape = et_predictor_facts(p)->field[ET_FIELD_X].shape; /* C, H, W */
    const int64_t classes = et_predictor_model(p)->num_classes;
    unsigned char *image = calloc((size_t)shape[0], (size_t)(shape[1] * shape[2]));
    float *score = calloc((size_t)classes, sizeof *score);
    et_status status =
        image && score ? et_predictor_run(p, image, 1, score, classes) : ET_ENOMEM;
    for (int64_t i = 0; i < classes && status == ET_OK; i++)
        printf("class %lld: %.3f\n", (long long)i, (double)score[i]);
    free(image);
    free(score);
    et_predictor_free(&p);
    return status;
}

int
main(int argc, char **argv)
{
    struct et_ctx *cx;
    if (argc != 3) {
        fprintf(stderr, "usage: from_recipe RECIPE DIRECTORY\n");
        return 1;
    }
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    et_status status = train(cx, argv[1], argv[2]);
    if (status == ET_OK)
        status = ask(cx, argv[2]);
    if (status != ET_OK)
        fprintf(stderr, "from_recipe: %s\n", et_error_get(cx)->message);
    et_ctx_free(&cx);
    return status != ET_OK;
}
