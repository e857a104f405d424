/* SPDX-License-Identifier: Apache-2.0 */
/* distillation.c: the trainer with a step of your own, and predictions.
 *
 * A small network learns what a larger one has learnt (Hinton et al. 2015, arXiv
 * 1503.02531): its loss is
 *
 *     (1 - a) CE(student, labels) + a T^2 CE(student / T, softmax(teacher / T))
 *
 * where T softens both. To change the loss is to replace one step of the training loop,
 * train_loss below; everything else stays the trainer's. Afterwards both networks
 * predict, and we count how often they say the same.
 *
 *     cc distillation.c $(pkg-config --cflags --libs etude) -o distil && ./distil
 */
#include <etude/etude.h>

#include <stdio.h>

enum { SAMPLES = 512, CLASSES = 10 };
#define SEED        17
#define TEMPERATURE 2.0
#define ALPHA       0.7

/* A network, and the trainer that has it in hand. */
struct learner {
    void *options;
    struct et_model *model;
    struct et_trainer *trainer;
};

struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    void *data_options, *optimizer_options;
    struct et_dataset *data;
    struct et_loader *train, *all; /* shuffled; in order */
    struct et_trainer_steps steps; /* of the student's trainer, which borrows them */
    struct learner teacher, student;
};

/* ---- the step ---- */

/* Called where the loop wants the loss of the batch. It builds nodes and computes
 * nothing yet. The state's outputs are what the student makes of the batch; the
 * teacher's answer is a forward pass more in the same graph. No gradient goes to the
 * teacher: the trainer asks for those of the student's parameters. */
static struct et_tensor *
distil(void *data, struct et_state *s)
{
    struct et_model *teacher = data;
    struct et_graph *g = et_state_get_graph(s);
    const struct et_samples *batch = et_state_get_batch(s);
    struct et_tensor *outputs = et_state_get_outputs(s);
    struct et_forward f = {.g = g}; /* not training: no dropout, running statistics */
    struct et_tensor *said = et_model_forward(teacher, &f, batch->x);
    struct et_tensor *soft = et_softmax(g, et_mul_scalar(g, said, 1 / TEMPERATURE), 1);
    struct et_tensor *hard_loss =
        et_state_loss(s, outputs, batch->target, ET_REDUCE_MEAN);
    struct et_tensor *soft_loss =
        et_cross_entropy(g, et_mul_scalar(g, outputs, 1 / TEMPERATURE), soft, NULL,
                         ET_IGNORE_INDEX, ET_REDUCE_MEAN);
    hard_loss = et_mul_scalar(g, hard_loss, 1 - ALPHA);
    soft_loss = et_mul_scalar(g, soft_loss, ALPHA * TEMPERATURE * TEMPERATURE);
    /* Each part is logged by its name: loss/train/labels, loss/train/teacher. */
    if (et_state_log_loss(s, "labels", hard_loss) != ET_OK ||
        et_state_log_loss(s, "teacher", soft_loss) != ET_OK)
        return NULL; /* the graph, or the context, remembers why */
    return et_add(g, hard_loss, soft_loss);
}

/* ---- training ---- */

static et_status
open_data(struct run *r)
{
    /* clang-format off */
    static const char *const set[] = {
        "type", "separable", /* brighter images have higher labels */
        "channels", "1",
        "resolution", "12",
        "num_samples", "512",
        "num_unique", "512",
        "batch_size", "64",
        "transforms", "{normalize: {mean: [0.5], std: [0.2]}}",
        NULL,
    };
    /* clang-format on */
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config shuffled = {
        .seed = SEED, .train = true, .dev = r->dev};
    const struct et_loader_config in_order = {.seed = SEED, .dev = r->dev};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    ET_TRY(et_loader_new(r->cx, r->data, &shuffled, &r->train));
    return et_loader_new(r->cx, r->data, &in_order, &r->all);
}

/* A network with HIDDEN units, trained with STEPS (NULL: the trainer's own). */
static et_status
learn(struct run *r, const char *hidden, const struct et_trainer_steps *steps,
      struct learner *l)
{
    const char *const set[] = {"hidden", hidden, "layers", "1", NULL};
    const struct et_model_class *c = et_model_class_find("mlp");
    const struct et_model_facts facts = {
        .channels = 1, .height = 12, .width = 12, .num_classes = CLASSES};
    ET_TRY(et_options_new(r->cx, &c->info, set, &l->options));
    ET_TRY(et_model_new(r->cx, c, l->options, &facts, &l->model));
    const struct et_trainer_config config = {
        .dev = r->dev,
        .model = l->model,
        .train = r->train,
        .optimizer = et_optimizer_find("adam"),
        .optimizer_options = r->optimizer_options,
        .max_duration = ET_EPOCHS(10),
        .seed = SEED,
        .steps = steps,
    };
    ET_TRY(et_trainer_new(r->cx, &config, &l->trainer));
    return et_trainer_fit(l->trainer, ET_TIME_UNSET);
}

/* ---- predicting ---- */

struct answers {
    int said[SAMPLES], right, n;
};

/* Gets the outputs of one batch, [n, CLASSES], on the host. */
static et_status
keep_answers(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct answers *a = data;
    (void)s;
    for (int64_t i = 0; i < p->desc.shape[0] && a->n < SAMPLES; i++) {
        const float *row = p->outputs + i * p->desc.shape[1];
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = row[c] > row[best] ? c : best;
        a->right += best == p->batch->field[ET_FIELD_TARGET].host.i32[i];
        a->said[a->n++] = best;
    }
    return ET_OK;
}

static et_status
train(struct run *r, struct answers *teacher, struct answers *student)
{
    static const char *const rule[] = {"lr", "0.01", NULL};
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx); /* no oneDNN: the plain C reference is always there */
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    ET_TRY(et_options_new(r->cx, &et_optimizer_find("adam")->info, rule,
                          &r->optimizer_options));
    ET_TRY(learn(r, "64", NULL, &r->teacher));
    r->steps =
        (struct et_trainer_steps){.data = r->teacher.model, .train_loss = distil};
    ET_TRY(learn(r, "8", &r->steps, &r->student));
    ET_TRY(et_trainer_predict(r->teacher.trainer, r->all, keep_answers, teacher));
    return et_trainer_predict(r->student.trainer, r->all, keep_answers, student);
}

static void
release(struct run *r)
{
    struct learner *both[] = {&r->student, &r->teacher};
    for (int i = 0; i < 2; i++) {
        et_trainer_free(&both[i]->trainer);
        et_model_free(&both[i]->model);
        et_options_free(&et_model_class_find("mlp")->info, &both[i]->options);
    }
    et_loader_free(&r->train);
    et_loader_free(&r->all);
    et_dataset_close(&r->data);
    et_options_free(&et_optimizer_find("adam")->info, &r->optimizer_options);
    et_options_free(&et_dataset_find("synthetic_images")->info, &r->data_options);
    et_device_close(&r->dev);
}

int
main(void)
{
    struct run r = {0};
    struct answers teacher = {.n = 0}, student = {.n = 0};
    int same = 0;
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "distillation: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_ctx_set_checks(r.cx, true); /* says what is freed or closed too early */
    et_status status = train(&r, &teacher, &student);
    if (status != ET_OK)
        fprintf(stderr, "distillation: %s\n", et_error_get(r.cx)->message);
    release(&r);
    et_ctx_free(&r.cx);
    if (status != ET_OK)
        return 1;
    for (int i = 0; i < SAMPLES; i++)
        same += teacher.said[i] == student.said[i];
    printf("of %d images the teacher has %d right, the student %d\n", student.n,
           teacher.right, student.right);
    printf("they say the same of %d\n", same);
    /* A tenth of the images would agree by chance. */
    if (student.n != SAMPLES || same < SAMPLES / 2) {
        fprintf(stderr, "distillation: the student has not learnt\n");
        return 1;
    }
    return 0;
}
