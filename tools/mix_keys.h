/* The options that are keys of a training record, for all tools whose .ggo includes
 * "mix_keys". */
#ifndef RAMPIPE_MIX_KEYS_H
#define RAMPIPE_MIX_KEYS_H

#include "rampipe/cli.h"
#include "rampipe/parallel_words.h"
#include "rampipe/parallel_step.h"

/* A key, and the text that an option gives it; NULL: the option was not given. */
struct mix_key {
    const char *key, *value;
};

enum { MIX_KEYS = 28 };
struct mix_options {
    struct mix_key key[MIX_KEYS]; /* ends with a key NULL */
    const char *cluster, *stacks, *devices;
    const char *schedule; /* a name or a file */
    const char *args, *megatron;
    const char *kernels[2]; /* tables of products and of attention */
};
#define MIX_OPTIONS(args)                                                 \
    {                                                                     \
        .key = {{"device", (args)->device_arg},                           \
                {"stack", (args)->stack_arg},                             \
                {"gpus", (args)->gpus_arg},                               \
                {"tp", (args)->tp_arg},                                   \
                {"pp", (args)->pp_arg},                                   \
                {"vp", (args)->vp_arg},                                   \
                {"dp", (args)->dp_arg},                                   \
                {"cp", (args)->cp_arg},                                   \
                {"ep", (args)->ep_arg},                                   \
                {"etp", (args)->etp_arg},                                 \
                {"zero", (args)->zero_arg},                               \
                {"sp", (args)->sequence_parallel_given ? "1" : NULL},     \
                {"mbs", (args)->micro_batch_arg},                         \
                {"gbs", (args)->global_batch_arg},                        \
                {"seq", (args)->sequence_arg},                            \
                {"precision", (args)->precision_arg},                     \
                {"recompute", (args)->recompute_arg},                     \
                {"stage_layers", (args)->layers_arg},                     \
                {"ends", (args)->ends_arg},                               \
                {"shard", (args)->hybrid_shard_arg},                      \
                {"frozen", (args)->frozen_arg},                           \
                {"lora_rank", (args)->lora_rank_arg},                     \
                {"gradients", (args)->gradients_arg},                     \
                {"exchange_processors", (args)->exchange_processors_arg}, \
                {"overlap", (args)->overlap_arg},                         \
                {"rank_order", (args)->order_arg}},                       \
        .cluster = (args)->cluster_arg, .stacks = (args)->stacks_arg,     \
        .devices = (args)->devices_arg, .schedule = (args)->schedule_arg, \
        .args = (args)->args_arg, .megatron = (args)->megatron_arg,       \
        .kernels = {(args)->gemm_table_arg, (args)->attention_table_arg}, \
    }

/* What training records are answered from. Starts as {0}. */
struct mix_tables {
    struct parallel_stacks stacks;
    struct device_table devices;
    struct collective_table collectives;
    struct parallel_kernels *kernels; /* measured; NULL: no table was given. Owned */
    struct parallel_own own;          /* of --schedule */
    const char *schedule;             /* its name; NULL: not given */
    struct parallel_words args;       /* of --args, and arguments of Megatron */
    struct net *net;                  /* of --cluster; NULL: not given */
    char node[24], nic[REC_NUM_MAX];  /* what the cluster says; "": nothing */
    double inside,
        memory;     /* likewise: bytes/s inside an island, of a server; 0: nothing */
    bool colls;     /* the links of the cluster count themselves */
    bool *compared; /* of each device: with what the cluster has */
};

/* CLI_WORDS of main.h: puts the arguments of Megatron together, as --megatron=ARGUMENTS.
 * Returns how many words argv has then. */
int mix_words(int argc, char **argv);

/* Reads the shipped tables, unless `alone` the stacks too, those of the options, and the
 * cluster. False: cli->err. Free *tables even then. */
bool mix_tables_read(struct cli *cli, const struct mix_options *options, bool alone,
                     struct mix_tables *tables) REC_MUST_CHECK;
void mix_tables_free(struct mix_tables *tables);

/* Warns if the record is a cluster: answers go by --cluster alone. */
void mix_warn_cluster(const struct cli *cli, const struct mix_options *options,
                      const struct rec *rec);

/* Warns that of the questions this many have selective recomputation that runs nothing
 * again (struct parallel_count). */
void mix_warn_idle(const struct cli *cli, uint64_t idle, uint64_t asked);

/* True if an option replaces or adds a key. */
bool mix_options_any(const struct mix_options *options, const struct mix_tables *tables);
/* The reader of a training record whose keys are replaced by those of the options; *rec
 * becomes the record. The caller closes the reader, and frees *line behind it. NULL:
 * cli->err. */
struct rec_reader *mix_keys_apply(struct cli *cli, const struct mix_options *options,
                                  struct mix_tables *tables, struct rec *rec,
                                  char **line) REC_MUST_CHECK;

#endif
