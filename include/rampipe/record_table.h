/*
 * rampipe/record_table.h - the table of records: a new record is one row here.
 *
 *     REC_ROW(ENUMERATOR, WHOLE, "word", "about", "example", FIELDS, KEYS)
 *     REC_KIND_ROW(ENUMERATOR, kind, "about", "example", FIELDS, KEYS)
 *     REC_KIND_NAMED(ENUMERATOR, kind, "its name", "about", "example", FIELDS, KEYS)
 *
 * FIELDS are REC_FIELD("NAME", KIND, "about") one after the other, the fixed fields in
 * their order; KEYS are REC_KEY("name", KIND, "about"), the known keys (others may
 * appear); KIND is one of enum rec_kind. `about` is a sentence or two, with units;
 * `example` is a valid record, TABs written as \t.
 *
 * A type whose fields or keys depend on its first field has, behind its row (with no
 * example), a row for each value of that field. Such a row has all the fields again; the
 * keys of the type's row belong to every kind.
 *
 * WHOLE is the type of the record that this one belongs to and stands behind, or ALONE:
 * tools that gather, hold back or consume a graph do so with all its parts.
 *
 * Included by record.h (the enumerators) and lib/record/schema.c (the rows), which define
 * the macros. rampipe(5), reccheck and the tests read what comes of it.
 */
#ifndef REC_ROW
#define REC_ROW(...)
#endif
#ifndef REC_KIND_ROW
#define REC_KIND_ROW(...)
#endif
#ifndef REC_KIND_NAMED
#define REC_KIND_NAMED(...)
#endif

/* clang-format off */

REC_ROW(GRAPH, ALONE, "graph",
    "Opens a computation graph; its op, dep and coll records follow without other "
    "records between them.",
    "graph\tvgg16/4\tvgg16\tof=vgg16\tdegree=4",
    REC_FIELD("ID", ID, "name of the graph, unique in the stream")
    REC_FIELD("MODEL", TEXT, "name of the network"),
    REC_KEY("device", TEXT,
          "the device that its compute times hold for; absent if that is not known, or "
          "if they are of several devices")
    REC_KEY("peak", AMOUNT,
          "peak FLOP/s of that device at the precision that the times hold for")
    REC_KEY("batch", COUNT, "samples in a training step")
    REC_KEY("sequence", COUNT,
          "tokens in a sample; in a network with an encoder and a decoder, tokens in "
          "each of the two")
    REC_KEY("precision", TEXT,
          "type of its elements: fp32 or tf32 (4 bytes), fp16 or bf16 (2 bytes)")
    REC_KEY("family", TEXT, "transformer: a network with attention")
    REC_KEY("stands_for", COUNT,
          "folded: ranks, of which one is here; what the others exchange is not, so that "
          "it shares no links")
    REC_KEY("optimizer", TEXT,
          "MEMORY of its ops is what training with this optimizer needs, see "
          "footprint(1)")
    REC_KEY("of", ID, "the graph this one was partitioned from")
    REC_KEY("degree", COUNT, "number of parts that each op was to be split into")
    REC_KEY("parts", COUNT, "largest number of parts that an op has")
    REC_KEY("demand_memory", AMOUNT,
          "sum of MEMORY over all ops before partitioning, bytes (counted as op_memory= "
          "of done)")
    REC_KEY("demand_bytes", AMOUNT, "sum of BYTES over all deps before partitioning"))

REC_ROW(OP, GRAPH, "op",
    "An operation: one layer of the network in one direction, or one part of it.",
    "op\tvgg16/4\t2a\tforward\t0.0056\t206000000\ttype=Conv2d\tpair=81a\tof=2\tpart=1/4\t"
    "flops=2.96e10\tmoved=1.6e8\tclass=convolution\tgemm=1x802816x64x576",
    REC_FIELD("GRAPH", ID, "its graph")
    REC_FIELD("ID", ID, "its name, unique in the graph")
    REC_FIELD("PASS", PASS, "forward, backward or task")
    REC_FIELD("COMPUTE", AMOUNT, "time it takes on one server, seconds")
    REC_FIELD("MEMORY", AMOUNT,
          "memory it needs, bytes; a forward op and its backward twin on one server "
          "share it"),
    REC_KEY("type", TEXT, "the layer's type")
    REC_KEY("label", TEXT,
          "the layer's name; pictures show it instead of the type")
    REC_KEY("param", AMOUNT, "bytes of its parameters")
    REC_KEY("activation", AMOUNT, "bytes of its output")
    REC_KEY("stage", COUNT, "pipeline stage, if the profile gives one")
    REC_KEY("pair", ID, "its twin in the other pass")
    REC_KEY("of", ID, "the op it is a part of")
    REC_KEY("part", PART, "which part, I/N")
    REC_KEY("flops", AMOUNT,
          "floating-point operations, of the graph's batch; a multiply-add counts two")
    REC_KEY("moved", AMOUNT, "bytes that it reads from and writes to device memory")
    REC_KEY("class", TEXT,
          "kind of its work, on which the efficiency of a device depends: matmul, "
          "convolution, memory, ...")
    REC_KEY("hold", AMOUNT,
          "bytes that its server holds from its end on, in addition to MEMORY; partition "
          "divides them")
    REC_KEY("release", ID,
          "the op on the same server at whose end these bytes are released; without it, "
          "at the end of the step")
    REC_KEY("gemm", PRODUCT,
          "the matrix products that the op computes: BATCH products of an M x K by a K x "
          "N matrix. A part of an op has the value of the whole op. BATCH, or M where "
          "BATCH is 1, grows with the batch of the graph")
    REC_KEY("coll", ID,
          "of an op that communicates: the collective of which it is a member "
          "(all-reduce, reduce, all-gather, gather, scatter, broadcast, all-to-all, "
          "reduce-scatter, reduce-scatter-block or barrier), or send or recv; "
          "et2graph(1) adds ops of kind join and ring to collectives")
    REC_KEY("bytes", AMOUNT,
          "size of the message; in a collective, what one member contributes: its share "
          "of an all-gather, its whole vector of a reduce-scatter")
    REC_KEY("group", TEXT,
          "the process group of the collective; without it, all processes"))

REC_ROW(DEP, GRAPH, "dep",
    "A dependency: DST needs BYTES from SRC before it can start.",
    "dep\tvgg16/4\t2a\t3b\t103000000",
    REC_FIELD("GRAPH", ID, "its graph")
    REC_FIELD("SRC", ID, "the op that produces, or a coll")
    REC_FIELD("DST", ID, "the op that consumes")
    REC_FIELD("BYTES", AMOUNT,
          "bytes to move if they are on two servers; 0 if SRC is a coll"),
    REC_KEY("hazard", TEXT,
          "between tasks: raw (DST reads what SRC wrote), war, waw or fence (order only)")
    REC_KEY("kind", TEXT,
          "sync: an exchange among the parts of a backward op; only the end of the step "
          "waits for it"))

REC_ROW(COLL, GRAPH, "coll",
    "An exchange of a group of ops as one: it starts when all of them have ended. The "
    "ops that need its end have a dep of 0 bytes from it.",
    "coll\tvgg16/2\tsync3\tall-reduce\t4.1e8\tops=3a,3b\tlane=data",
    REC_FIELD("GRAPH", ID, "its graph")
    REC_FIELD("ID", ID, "its name; no op of the graph has the same")
    REC_FIELD("KIND", EXCHANGE,
          "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, "
          "barrier or send")
    REC_FIELD("BYTES", AMOUNT,
          "the size that nccl-tests prints: of all-reduce, broadcast and reduce the "
          "whole vector; of all-gather the vector that all have in the end, of "
          "reduce-scatter that with which each begins; of all-to-all all that one member "
          "sends, its share for itself included; of send the message; of barrier 0"),
    REC_KEY("ops", IDS,
          "the group: its ops in the order of ranks, at least two. The first is the root "
          "of broadcast and reduce, and the sender of send, which has two. Several on "
          "one server count as one member, and a group on one server takes no time")
    REC_KEY("lane", TEXT,
          "its communicator: on a server one exchange of a lane runs at a time, in the "
          "order in which they become ready; without it, it waits for no other"))

REC_ROW(JOB, ALONE, "job",
    "A request to train: the first of GRAPHs that fits is run for STEPS steps.",
    "job\t7\tvgg16/8,vgg16/4\t1000\t50\t9321.8",
    REC_FIELD("ID", ID, "its name, unique in the stream")
    REC_FIELD("GRAPHS", IDS, "alternatives in order of preference")
    REC_FIELD("ARRIVAL", AMOUNT, "seconds")
    REC_FIELD("STEPS", COUNT, "training steps")
    REC_FIELD("DEADLINE", LIMIT,
          "longest acceptable completion time, seconds from arrival; inf: any"),
)

REC_ROW(DEVICE, ALONE, "device",
    "The peak rates of a processor. If two records have one name, the later one counts.",
    "device\ta100\t2.039e12\t8e10\tfp32=1.95e13\ttf32=1.56e14\tfp16=3.12e14\t"
    "bf16=3.12e14\t"
    "source=NVIDIA A100 80GB SXM datasheet",
    REC_FIELD("NAME", ID, "its name")
    REC_FIELD("BANDWIDTH", AMOUNT, "bandwidth of its memory, bytes/s")
    REC_FIELD("MEMORY", AMOUNT, "bytes"),
    REC_KEY("fp32", AMOUNT,
          "peak FLOP/s without sparsity; without this key there is none for this "
          "precision")
    REC_KEY("tf32", AMOUNT, "likewise")
    REC_KEY("fp16", AMOUNT, "likewise")
    REC_KEY("bf16", AMOUNT, "likewise")
    REC_KEY("fp8", AMOUNT, "likewise; of matrix products in training steps alone")
    REC_KEY("fp4", AMOUNT, "likewise")
    REC_KEY("processors", COUNT, "streaming multiprocessors, or compute units")
    REC_KEY("source", TEXT, "where the numbers come from"))

REC_ROW(REACH, ALONE, "reach",
    "Which share of a device's peak the ops of a class reach. For class memory it is a "
    "share of the bandwidth, which also holds for the bytes that ops of other classes "
    "move. A record of the very device goes before one of any device, then one of the "
    "very precision before others, then the later one.",
    "reach\tany\tmatmul\t0.6\tprecision=fp16\tlatency=5e-6\ttile=128",
    REC_FIELD("DEVICE", ID, "the device, or any")
    REC_FIELD("CLASS", ID, "class= of the ops")
    REC_FIELD("SHARE", FRACTION, "of the peak, above 0"),
    REC_KEY("precision", TEXT, "fp32, tf32, fp16 or bf16; without it any")
    REC_KEY("latency", AMOUNT, "time that each op takes in addition, seconds")
    REC_KEY("tile", COUNT,
          "M and N of gemm= are rounded up to multiples of it; one that fits into its "
          "half, quarter, ... is rounded up to that")
    REC_KEY("source", TEXT, "where the numbers come from"))

REC_ROW(FABRIC, ALONE, "fabric",
    "The data sheet of what connects the GPUs of a machine. The name stands for all "
    "systems, and else for all GPUs, whose name begins with it; of several the longest "
    "counts, and of equal ones the later. Training steps take that of the device's name "
    "without its memory, as a100-pcie of a100-80-pcie.",
    "fabric\ta100\tnvlink\t3e11\t9.2e-6\tpcie=3.15e10\treach=0.76\tsource=data sheet",
    REC_FIELD("NAME", ID, "how names of systems or GPUs begin")
    REC_FIELD("LINK", ID,
          "nvlink (all GPUs of a node over switches), pairs (NVLink joins two GPUs, PCIe "
          "the pairs), or pcie")
    REC_FIELD("BANDWIDTH", AMOUNT,
          "of one GPU, one way, bytes/s: of its NVLink, or of its slot if it has none")
    REC_FIELD("LATENCY", AMOUNT,
          "time that an all-reduce of two GPUs takes with a small buffer, seconds"),
    REC_KEY("pcie", AMOUNT, "of pairs: bandwidth of a slot, one way, bytes/s")
    REC_KEY("adapter", AMOUNT, "network bandwidth of one GPU, one way, bytes/s")
    REC_KEY("adapters", COUNT, "how many adapters a node has, which its GPUs share")
    REC_KEY("reach", FRACTION,
          "share of BANDWIDTH that collectives reach with large buffers; without it 0.8")
    REC_KEY("adds", COUNT,
          "1 if its switches add floating-point numbers, so that a reduction sends fewer "
          "bytes; 0, the default, if not")
    REC_KEY("like", ID, "the measured system whose times are scaled to this one")
    REC_KEY("source", TEXT, "where the numbers come from"))

REC_ROW(SERIES, ALONE, "series",
    "Opens the measured times of one kind of exchange in groups of one size; its piece "
    "records follow.",
    "series\ts7\th100-sxm\tall-reduce\t8\t1\tversion=2.29.2\tsource=nccl.tsv",
    REC_FIELD("ID", ID, "its name, unique in the table")
    REC_FIELD("SYSTEM", ID, "the machine")
    REC_FIELD("KIND", ID,
          "all-reduce, all-gather, reduce-scatter, all-to-all, send-recv, or the name of "
          "another exchange, as deepep-ll-dispatch")
    REC_FIELD("RANKS", COUNT, "GPUs in the group, at least 2")
    REC_FIELD("NODES", COUNT, "nodes over which they are spread evenly"),
    REC_KEY("version", TEXT, "of the library that was measured")
    REC_KEY("hidden", COUNT, "of an exchange of tokens: numbers in a token")
    REC_KEY("topk", COUNT, "of an exchange of tokens: experts that a token goes to")
    REC_KEY("experts", COUNT, "of an exchange of tokens: experts in all")
    REC_KEY("sms", COUNT, "processors of the GPU that communicate, if that is set")
    REC_KEY("dtype", TEXT, "type of the elements, if times depend on it")
    REC_KEY("source", TEXT, "where the times were measured"))

REC_ROW(PIECE, SERIES, "piece",
    "A state of the library, in which time is LATENCY + size / RATE: one algorithm with "
    "one protocol. Between two pieces the state changes, and the time may jump.",
    "piece\ts7\t8388608\t134217728\t2.1e-5\t2.1e11",
    REC_FIELD("SERIES", ID, "its series")
    REC_FIELD("FROM", AMOUNT,
          "smallest size of the state: bytes as nccl-tests counts them; of an exchange "
          "of tokens: tokens of a rank")
    REC_FIELD("TO", LATER, "largest size")
    REC_FIELD("LATENCY", AMOUNT, "seconds")
    REC_FIELD("RATE", LIMIT, "bytes/s, or tokens/s; inf: one size was measured"),
)

REC_ROW(LAW, ALONE, "law",
    "The constants of kernels of a device and type, found by kernel fit, which the "
    "measured kernels in the timed records behind it correct; see kernel(1).",
    "law\tl1\th100\tgemm\tbf16\tinference\t"
    "constants=0.8,140,0.8,4e-6,0.9,0.8,0.9,0.8,2e-6,1,1\t"
    "lengths=2,2,2,0.5,2,2,2,2,1,1,2,2,2\tspread=0.1,0.1,0.3,0.03,0.03\tmeans=0,-,-,-",
    REC_FIELD("ID", ID, "its name, unique in the table")
    REC_FIELD("DEVICE", ID, "a device that a device record describes")
    REC_FIELD("OP", ID, "gemm or attention")
    REC_FIELD("DTYPE", ID, "fp32, tf32, fp16, bf16, fp8 or nvfp4")
    REC_FIELD("SET", ID, "inference or training: of which libraries"),
    REC_KEY("constants", TEXT,
          "of the form: share of the peak in the main loop; start of a tile, steps of K; "
          "share of the bandwidth; launch, seconds; relative share of tiles of 128 x 128 "
          "and of each halving of them; of rows that are no multiple of 16; share of the "
          "bandwidth and seconds of a cast; of attention the weight of the longest block "
          "and the relative share of the backward pass")
    REC_KEY("lengths", TEXT, "along each coordinate, at which kernels are alike")
    REC_KEY("spread", TEXT,
          "of log(measured / form): standard deviations of its near and far parts, the "
          "factor of far distances, the noise, the noise of a kernel of 10 us besides")
    REC_KEY("means", TEXT,
          "of log(measured / form), forward, input-gradient, weight-gradient, backward; "
          "-: there is no such pass")
    REC_KEY("cast", COUNT, "1: times include the cast of the input from bf16"))

REC_ROW(TIMED, LAW, "timed",
    "Measured kernels of a law.",
    "timed\tl1\t4096,4096,4096:210 8192,8192,8192:1630\tpass=forward",
    REC_FIELD("LAW", ID, "its law")
    REC_FIELD("KERNELS", TEXT,
          "SHAPE:MICROSECONDS with blanks between; SHAPE is M,K,N of a product, "
          "BATCH,SEQUENCE,HEADS,KV and perhaps ,QK,V of attention"),
    REC_KEY("pass", TEXT,
          "forward, input-gradient or weight-gradient of products, backward of "
          "attention; without it forward")
    REC_KEY("groups", COUNT, "products of each shape in a kernel; without it 1")
    REC_KEY("out", COUNT, "4: results are fp32, which weight gradients are added to"))

REC_ROW(KERNEL, ALONE, "kernel",
    "A question how long a kernel takes; kernel(1) adds the answer.",
    "kernel\tk1\th100\tgemm\tbf16\t4096,4096,4096\tseconds=0.00021\tshare=0.66\t"
    "how=neighbours\terror=0.05",
    REC_FIELD("ID", ID, "its name")
    REC_FIELD("DEVICE", ID, "a device that a device record describes")
    REC_FIELD("OP", ID, "gemm, attention, or memory")
    REC_FIELD("DTYPE", ID, "as in law")
    REC_FIELD("SHAPE", TEXT, "as SHAPE in timed; of memory the bytes that it moves"),
    REC_KEY("pass", TEXT, "as in timed")
    REC_KEY("groups", COUNT, "as in timed")
    REC_KEY("out", COUNT, "as in timed")
    REC_KEY("set", TEXT,
          "inference or training; without it inference, of backward passes training")
    REC_KEY("cast", COUNT, "1: the input is cast from bf16 first, in this time")
    REC_KEY("seconds", AMOUNT, "the answer")
    REC_KEY("share", AMOUNT,
          "of the peak that the FLOPs reach (attention: those of the full square); of "
          "memory, of the bandwidth")
    REC_KEY("how", TEXT,
          "how it was predicted: measured, neighbours, tiles (no similar kernel was "
          "measured), sheet (a relative's law); none: no law covers it")
    REC_KEY("law", TEXT, "the same in more words, or why there is no answer")
    REC_KEY("error", AMOUNT,
          "mean error of such predictions where they were checked; without it they never "
          "were"))

REC_ROW(CHECKED, ALONE, "checked",
    "How far predictions of one case were from measured times that the table had not "
    "seen.",
    "checked\tranks\t104\t0.05\t0.11\t0.3\tabout=4 of 2, 4 and 8 ranks left out",
    REC_FIELD("CASE", ID,
          "size, ranks, nodes, sheet-nvlink or sheet-pcie; of an exchange of tokens with "
          "tokens- before it; of kernels DEVICE/DTYPE/OP/SET/large or /small, sheet/OP, "
          "ratio/OP (passes), inference/OP")
    REC_FIELD("ROWS", COUNT, "measured times that were compared")
    REC_FIELD("MEAN", AMOUNT, "mean of |predicted / measured - 1|")
    REC_FIELD("P90", AMOUNT, "its 0.9 quantile")
    REC_FIELD("WORST", AMOUNT, "its maximum"),
    REC_KEY("about", TEXT, "what was left out")
    REC_KEY("trivial", AMOUNT, "mean error of a trivial model on the same times"))

REC_ROW(COLLECTIVE, ALONE, "collective",
    "A question how long an exchange takes alone; collective(1) adds the answer.",
    "collective\tc1\th100-sxm\tall-reduce\t8\t1\t1073741824\tseconds=0.0047\t"
    "busbw=4e11\thow=state\tlaw=h100-sxm, 8 ranks, one state\terror=0.03",
    REC_FIELD("ID", ID, "its name")
    REC_FIELD("SYSTEM", ID, "the machine, as in series, or as in fabric")
    REC_FIELD("KIND", ID, "as in series")
    REC_FIELD("RANKS", COUNT, "GPUs in the group, at least 2")
    REC_FIELD("NODES", COUNT, "nodes over which they are spread evenly")
    REC_FIELD("SIZE", AMOUNT, "as FROM of piece"),
    REC_KEY("gpu", TEXT, "the GPU, if SYSTEM does not begin with its name")
    REC_KEY("version", TEXT, "of the library; without it the newest")
    REC_KEY("hidden", COUNT, "as in series")
    REC_KEY("topk", COUNT, "as in series")
    REC_KEY("experts", COUNT, "as in series")
    REC_KEY("sms", COUNT, "as in series")
    REC_KEY("dtype", TEXT, "as in series")
    REC_KEY("seconds", AMOUNT, "the answer")
    REC_KEY("busbw", AMOUNT,
          "bus bandwidth in the terms of nccl-tests, bytes/s; not of exchanges of tokens")
    REC_KEY("how", TEXT,
          "how it was predicted: state (measured), ranks or nodes (a law from other "
          "groups), sheet (a data sheet); none: no law covers it, and there is no "
          "seconds=")
    REC_KEY("law", TEXT, "the same in more words, or why there is no answer")
    REC_KEY("error", AMOUNT,
          "mean error of such predictions where they were checked; without it they "
          "never were"))

REC_ROW(STACK, ALONE, "stack",
    "What a training software reaches on a device: six numbers, fitted to measured "
    "steps. steptime(1) uses them.",
    "stack\tmegatron-2022\t0.81\t0.8\t0.5\t1\t0\t0.8\tdevice=a100-80\t"
    "families=seqsel-table5\tblocking=1\trows=5\tfit=0.01",
    REC_FIELD("NAME", ID, "its name")
    REC_FIELD("SHARE", LIMIT, "share of the peak that large matrix products reach")
    REC_FIELD("MEMORY", LIMIT, "share of the bandwidth of memory that other ops reach")
    REC_FIELD("ATTENTION", LIMIT,
          "share of the peak that fused attention reaches, counted on the full square "
          "of scores")
    REC_FIELD("EXPOSED", FRACTION,
          "of exchanges that run beside computing, the share that is not hidden")
    REC_FIELD("HOST", AMOUNT, "seconds in which the host issues a kernel")
    REC_FIELD("ADAPTER", FRACTION,
          "share of the adapters' bandwidth that exchanges over nodes reach"),
    REC_KEY("device", TEXT, "the devices that it is for, with commas between")
    REC_KEY("precision", TEXT,
          "the precisions of matrix products that it is for, with commas between: bf16, "
          "fp8, fp4")
    REC_KEY("families", TEXT,
          "the families of measured steps whose stack it is, with commas between")
    REC_KEY("releases", TEXT, "releases of the software, with commas between")
    REC_KEY("blocking", COUNT,
          "1: messages of the pipeline hold up both devices")
    REC_KEY("copies", COUNT,
          "1: each rank of a tensor group sends a whole message to the next stage")
    REC_KEY("between", AMOUNT,
          "seconds between steps in which the device waits for the host; without it "
          "0.007")
    REC_KEY("gradient", COUNT,
          "bytes of an element of gradients where replicas exchange them; without it 4")
    REC_KEY("held", COUNT,
          "bytes that the gradient of a parameter takes in memory; without it gradient=; "
          "of fp16 always 2")
    REC_KEY("loss", COUNT,
          "bytes that the loss holds of each score of a word at its peak: 4, the "
          "default, if it is fused; 14 of PyTorch's own, whose gradient of log_softmax "
          "needs the score in 16 bits and three of its kind in 32")
    REC_KEY("sharded_loss", COUNT,
          "the same where tensor ranks divide the words; without it loss=. 18 of "
          "PyTorch's: its loss_parallel() needs four numbers of 32 bits")
    REC_KEY("unpadded", COUNT,
          "1: without tensor parallelism the head has as many columns as there are "
          "words, and a number that is no multiple of 8 makes it slow; without it the "
          "words are filled up to a multiple of 128 for each tensor rank, as Megatron-LM "
          "does")
    REC_KEY("frees", COUNT,
          "1: a stage of a pipeline frees what it has sent to the next one, and does not "
          "keep it until its gradient comes (deallocate_pipeline_outputs of Megatron-LM)")
    REC_KEY("flat", COUNT,
          "1: the optimizer makes flat copies of gradients, as that of DeepSpeed: of "
          "fp16 8 bytes a parameter, 6 if it is sharded; of bf16 4 bytes of the largest "
          "weight. Without it 4 of fp16, none of bf16. Backward has freed its "
          "activations by then")
    REC_KEY("reserved", COUNT,
          "1: memory is what the allocator of PyTorch has reserved under FSDP2. Blocks "
          "of a layer do not serve the loss; embedding and head stay gathered; a product "
          "keeps its input as tensor ranks gathered it, unless overlap= has tp; the last "
          "device of a pipeline keeps the scores of the step and joins them")
    REC_KEY("overhead", AMOUNT,
          "bytes of a device that training takes beside what it counts: context, buffers "
          "of exchanges, what the allocator cannot use. Memory is then what the driver "
          "shows, which has activations and copies of gradients at once")
    REC_KEY("rows", COUNT, "measured steps that the numbers were fitted to")
    REC_KEY("fit", AMOUNT, "mean of |predicted / measured - 1| on them")
    REC_KEY("error", AMOUNT,
          "the same on steps that a fit to the others had not seen; without it there "
          "were too few")
    REC_KEY("like", AMOUNT,
          "the same on steps of other software, for which it stands in; without it there "
          "were none")
    REC_KEY("source", TEXT, "where the steps were measured"))

REC_ROW(TRAINING, ALONE, "training",
    "A question: how long does a training step of a transformer take? steptime(1) adds "
    "the answer. Degrees without a key are 1.",
    "training\tt1\tdevice=h100-80\tgpus=64\tlayers=80\thidden=8192\tffn=28672\theads=64\t"
    "kv=8\tvocab=32000\tseq=4096\ttp=8\tdp=8\tmbs=1\tgbs=8\tseconds=0.6",
    REC_FIELD("ID", ID, "its name"),
    REC_KEY("device", TEXT, "a device of the table of devices")
    REC_KEY("stack", TEXT, "a stack of the table of stacks; without it, by family=, then "
          "by device= and precision=")
    REC_KEY("family", TEXT, "family of measured steps that the question belongs to")
    REC_KEY("release", TEXT, "release of the software")
    REC_KEY("gpus", COUNT, "devices in all: tp x pp x cp x dp")
    REC_KEY("node", COUNT, "devices of an island; default 8")
    REC_KEY("nic", AMOUNT,
          "bandwidth of the adapters for each device, one way, bytes/s; without it that "
          "of the data sheet of the device (record fabric)")
    REC_KEY("layers", COUNT, "layers of the transformer")
    REC_KEY("hidden", COUNT, "width of a token between layers")
    REC_KEY("ffn", COUNT,
            "width of an MLP between its products; needed unless all layers have "
            "experts")
    REC_KEY("heads", COUNT, "heads of queries")
    REC_KEY("kv", COUNT,
          "heads of keys and values, which divide heads; without it as many as heads")
    REC_KEY("head_dim", COUNT,
            "width of a query; without it hidden / heads, if that is whole")
    REC_KEY("vocab", COUNT, "size of the vocabulary")
    REC_KEY("seq", COUNT, "tokens in a sample")
    REC_KEY("mlp", TEXT, "gelu, relu2 (two products) or swiglu (three, the default)")
    REC_KEY("norm", TEXT,
          "rms (the default) or layer (the default if mlp=gelu or relu2)")
    REC_KEY("positions", COUNT,
          "learned positions, at least seq if there are some; without it seq if "
          "mlp=gelu, else 0")
    REC_KEY("bias", TEXT,
          "products with a bias, with commas between, or none: qkv, projection, mlp; "
          "without it all if mlp=gelu, else none")
    REC_KEY("qk_norm", TEXT, "norms of queries and keys: none, head, heads")
    REC_KEY("tied", COUNT,
          "1: the head shares the weights of the embedding; the default if mlp=gelu")
    REC_KEY("dropout", COUNT,
          "1: dropout, whose masks are kept; the default if mlp=gelu")
    REC_KEY("experts", COUNT, "experts of a layer (mixture of experts)")
    REC_KEY("topk", COUNT, "experts to which a token goes")
    REC_KEY("expert_ffn", COUNT, "width of an expert")
    REC_KEY("shared_ffn", COUNT, "width of the experts that all tokens share")
    REC_KEY("dense_layers", COUNT,
          "number of first layers that have a dense MLP instead of experts")
    REC_KEY("q_rank", COUNT, "latent attention: rank of queries")
    REC_KEY("kv_rank", COUNT, "latent attention: rank of keys and values")
    REC_KEY("rope_dim", COUNT,
          "latent attention: width of the part with rotary positions")
    REC_KEY("value_dim", COUNT, "width of a value; without it head_dim")
    REC_KEY("window", COUNT,
          "sliding window of every other layer: keys that a query attends to")
    REC_KEY("blocks", TEXT,
          "layers that differ, as 3xd,58xe: 3 layers with a dense MLP, 58 with experts; "
          "in d128 a query attends to 128 keys")
    REC_KEY("tp", COUNT, "tensor parallel degree")
    REC_KEY("pp", COUNT, "pipeline stages")
    REC_KEY("vp", COUNT, "virtual stages (chunks of layers) of each pipeline stage")
    REC_KEY("cp", COUNT, "context parallel degree")
    REC_KEY("ep", COUNT, "expert parallel degree")
    REC_KEY("etp", COUNT,
          "tensor parallel degree of experts; without it tp, with sequence parallelism 1")
    REC_KEY("dp", COUNT, "data parallel degree: replicas")
    REC_KEY("zero", COUNT,
          "what replicas shard: 0 nothing, 1 the optimizer, 2 also gradients, 3 also "
          "weights")
    REC_KEY("shard", COUNT,
          "hybrid sharding: replicas of a group that shards; the groups hold copies of "
          "each other. Without it all replicas shard")
    REC_KEY("sp", COUNT, "1: sequence parallelism")
    REC_KEY("mbs", COUNT, "samples in a microbatch")
    REC_KEY("gbs", COUNT, "samples in a step (global batch)")
    REC_KEY("replica_batch", COUNT, "samples of a replica in a step, in place of gbs=")
    REC_KEY("recompute", TEXT,
          "what the backward pass recomputes: none, selective, op-selective, full; N: "
          "the first N layers of each virtual stage in full, or a list of such numbers, "
          "one for each virtual stage")
    REC_KEY("attention", TEXT, "fused (the default) or unfused")
    REC_KEY("precision", TEXT,
          "precision of matrix products: bf16, fp16, fp8, mxfp8, nvfp4")
    REC_KEY("attention_precision", TEXT, "bf16 (the default) or fp8")
    REC_KEY("activation_input", TEXT,
          "type in which the input of the MLP's activation function is kept for the "
          "backward pass: bf16 (the default) or fp8 (Megatron-LM's "
          "activation_func_fp8_input_store)")
    REC_KEY("overlap", TEXT,
          "exchanges that overlap with computing, with commas between: tp, pp, dp, cp, "
          "ep, or none; prefetch changes nothing, as sharded weights are always gathered "
          "beside computing")
    REC_KEY("rank_order", TEXT,
          "order of ranks: tp, cp, dp, pp in any order, with or without ep; ranks that "
          "differ in the first one only are neighbours; default tp-cp-dp-pp")
    REC_KEY("ends", TEXT,
          "layers: the split over stages counts embedding and head as one layer each")
    REC_KEY("stage_layers", TEXT,
          "layers of each virtual stage along the model, with commas between; their sum "
          "is layers, or layers + 2 if embedding and head count")
    REC_KEY("chunk_layers", COUNT,
          "layers of each virtual stage, in place of vp=: vp is then layers / (pp x "
          "chunk_layers)")
    REC_KEY("frozen", TEXT,
          "parts whose weights are not trained, with commas between: embedding, "
          "attention, mlp, experts, norms, head, all")
    REC_KEY("cp_comm", TEXT,
          "exchange of context parallelism: p2p (the default; keys and values go round "
          "in a ring) or a2a (all-to-alls exchange heads)")
    REC_KEY("lora_rank", COUNT,
          "rank of LoRA adapters; all other weights are frozen, unless frozen= lists "
          "parts")
    REC_KEY("lora_on", TEXT,
          "products that have adapters, of qkv, proj, mlp; default qkv,proj")
    REC_KEY("cuda_graph", TEXT,
          "what is captured in CUDA graphs: none, layer, iteration")
    REC_KEY("param_gather", TEXT, "precision in which shards of weights are gathered")
    REC_KEY("exchange_processors", COUNT,
          "processors (SMs) that an overlapped exchange takes from computing; without it "
          "such an exchange costs only the share that the stack leaves exposed")
    REC_KEY("gradients", TEXT,
          "number format in which gradients are held and exchanged: bf16, fp32, or stack "
          "(gradient= of the stack record)")
    REC_KEY("schedule", TEXT,
          "gpipe, 1f1b, interleaved, zero-bubble, v, or the name of a schedule record; "
          "without it 1f1b, or interleaved if vp > 1")
    REC_KEY("seconds", AMOUNT, "the answer: seconds of a step")
    REC_KEY("p10", AMOUNT,
          "with steptime --jitter: seconds that 10 % of the steps do not exceed")
    REC_KEY("p90", AMOUNT, "likewise: seconds that 90 % of the steps do not exceed")
    REC_KEY("memory", AMOUNT, "bytes of memory of the fullest device")
    REC_KEY("why", TEXT, "shares of the time in percent")
    REC_KEY("error", AMOUNT,
          "mean error of such predictions: error= of the stack, or like= if it stands in")
    REC_KEY("how", TEXT,
          "stack (the stack of the family), like (of the same device and precision), "
          "none: there is no answer, and law= says why")
    REC_KEY("law", TEXT, "the stack, or why there is no answer")
    REC_KEY("samples_s", AMOUNT, "samples a second")
    REC_KEY("tokens_s", AMOUNT, "tokens a second")
    REC_KEY("mfu", AMOUNT,
          "share of the peak of the devices: operations of the model, with attention in "
          "full")
    REC_KEY("mfu_causal", AMOUNT,
          "likewise, with the half of attention that a causal mask leaves")
    REC_KEY("hfu", AMOUNT,
          "likewise, operations that the devices run: recomputation counts, gradients of "
          "frozen weights do not; attention in full")
    REC_KEY("hfu_causal", AMOUNT, "likewise, with half of attention")
    REC_KEY("bubble", AMOUNT, "share of the pipeline's time in which devices wait")
    REC_KEY("from_table", AMOUNT,
          "with tables of measured kernels: share of the time that comes from them")
    REC_KEY("from_form", AMOUNT,
          "likewise: share of products and attention that the tables do not have")
    REC_KEY("exposed_tp", AMOUNT,
          "seconds of tensor exchanges that are not hidden, on the device that ends last")
    REC_KEY("exposed_pp", AMOUNT, "likewise, of messages between stages")
    REC_KEY("exposed_dp", AMOUNT,
          "likewise, of gradients and weights of replicas, and of a tied embedding")
    REC_KEY("exposed_cp", AMOUNT, "likewise, of context exchanges")
    REC_KEY("exposed_ep", AMOUNT, "likewise, of exchanges of tokens among experts")
    REC_KEY("of_weights", AMOUNT, "part of memory=: weights, bytes")
    REC_KEY("of_gradients", AMOUNT, "part of memory=: gradients, bytes")
    REC_KEY("of_optimizer", AMOUNT, "part of memory=: state of the optimizer, bytes")
    REC_KEY("of_activations", AMOUNT,
          "part of memory=: activations at their peak, bytes")
    REC_KEY("of_working", AMOUNT,
          "part of memory=: a layer that is recomputed, scores of the vocabulary, bytes")
    REC_KEY("of_overhead", AMOUNT,
          "part of memory=: overhead= of the stack, scores that the last device of a "
          "pipeline keeps (reserved=), bytes; without it none")
    REC_KEY("days", AMOUNT, "days of training with the tokens of steptime --tokens")
    REC_KEY("dollars", AMOUNT, "US$ of that training, at the price of steptime --price")
    REC_KEY("closed", AMOUNT, "plan-train(1): seconds by the closed form")
    REC_KEY("bound", TEXT, "likewise: what takes the largest share of the time")
    REC_KEY("cost", AMOUNT, "likewise: US$ of the steps")
    REC_KEY("frontier", TEXT,
          "likewise: gpus (no fewer devices are as fast), cost (nothing cheaper is as "
          "fast), with a comma between, or none")
    REC_KEY("vary", TEXT, "likewise: what was changed of the machine")
    REC_KEY("factor", AMOUNT, "likewise: by how much it was multiplied")
    REC_KEY("kept", AMOUNT,
          "likewise: seconds of the mix that is best for the unchanged machine; without "
          "it that mix does not fit")
    REC_KEY("measured", AMOUNT,
          "seconds that were measured, in traces/measured-steps.rec")
    REC_KEY("source", TEXT, "where they are from"))

REC_ROW(NEAR, ALONE, "near",
    "A measured step near a predicted one, and what is predicted of it, steptime --near.",
    "near\tt1\tmlperf31-nvidia-768\t11.6\t11.7\tdevice=h100-80\tmix=tp 4 pp 8 dp 24",
    REC_FIELD("TRAINING", ID, "the question")
    REC_FIELD("STEP", ID, "the measured step")
    REC_FIELD("MEASURED", AMOUNT, "seconds")
    REC_FIELD("SECONDS", AMOUNT, "predicted in the same way"),
    REC_KEY("device", TEXT, "as in training")
    REC_KEY("precision", TEXT, "bf16 (or fp16), fp8, fp4")
    REC_KEY("gpus", COUNT, "devices")
    REC_KEY("params", AMOUNT, "of the model")
    REC_KEY("mix", TEXT, "degrees that are not 1")
    REC_KEY("stack", TEXT, "that predicts it")
    REC_KEY("source", TEXT, "of what was measured"))

REC_ROW(SPENT, ALONE, "spent",
    "Where the time and the memory of a device of the pipeline go in a step, steptime "
    "--stages. The parts of the time, seconds, add up to SECONDS.",
    "spent\tt1\t0\t0.6\tproducts=0.4\tidle=0.2\tof_weights=1.7e10",
    REC_FIELD("TRAINING", ID, "the question")
    REC_FIELD("DEVICE", COUNT, "of the pipeline: 0 to pp - 1")
    REC_FIELD("SECONDS", AMOUNT, "of the step"),
    REC_KEY("products", AMOUNT, "of matrices")
    REC_KEY("attention", AMOUNT, "its kernels")
    REC_KEY("memory", AMOUNT, "ops that move bytes through memory")
    REC_KEY("host", AMOUNT, "that kernels wait for the host")
    REC_KEY("tensor", AMOUNT,
          "exchanges of tensor groups, as all others what is not hidden")
    REC_KEY("context", AMOUNT, "of context groups")
    REC_KEY("expert", AMOUNT, "of expert groups")
    REC_KEY("shards", AMOUNT, "weights that are gathered, gradients that are scattered")
    REC_KEY("messages", AMOUNT, "to other stages, as far as they hold the device up")
    REC_KEY("idle", AMOUNT, "in the pipeline, and until the last device ends")
    REC_KEY("gradients", AMOUNT, "exchange behind the last pass")
    REC_KEY("gather", AMOUNT, "of weights before the next step")
    REC_KEY("optimizer", AMOUNT, "its update")
    REC_KEY("of_weights", AMOUNT, "bytes")
    REC_KEY("of_gradients", AMOUNT, "bytes")
    REC_KEY("of_optimizer", AMOUNT, "bytes")
    REC_KEY("of_activations", AMOUNT, "bytes, at their peak")
    REC_KEY("of_working", AMOUNT, "bytes")
    REC_KEY("of_overhead", AMOUNT, "bytes, of stacks that have one"))

REC_ROW(SCHEDULE, ALONE, "schedule",
    "An order of one's own in which the devices of a pipeline run the passes of a step; "
    "its pass records follow.",
    "schedule\tmine\t4\t8\tchunks=1",
    REC_FIELD("ID", ID, "its name")
    REC_FIELD("STAGES", COUNT, "devices of the pipeline")
    REC_FIELD("MICROBATCHES", COUNT, "of a step of a replica"),
    REC_KEY("chunks", COUNT, "of layers on each device; without it 1")
    REC_KEY("split", COUNT,
          "1: backward is two passes, backward (gradient of the input) and weight "
          "(gradient of the weights)")
    REC_KEY("shape", TEXT,
          "v: device R has the virtual stages R and 2 STAGES - 1 - R; else R, then R + "
          "STAGES, ..."))

REC_ROW(PASS, SCHEDULE, "pass",
    "What a device runs next. Each device has each pass of each microbatch and chunk "
    "once.",
    "pass\tmine\t0\tforward\t3",
    REC_FIELD("SCHEDULE", ID, "its schedule")
    REC_FIELD("DEVICE", COUNT, "0 to STAGES - 1")
    REC_FIELD("PASS", TEXT, "forward, backward or weight")
    REC_FIELD("MICROBATCH", COUNT, "from 0 on"),
    REC_KEY("chunk", COUNT, "of the device; without it 0"))

REC_ROW(FIT, ALONE, "fit",
    "The largest batch with which training a graph fits into the memory of a server, "
    "footprint(1).",
    "fit\tgpt2-xl\t18\t77971213312\tlimit=80000000000\tweights=3115222400\t"
    "gradients=3115222400\t"
    "optimizer_state=18691334400\toutputs=53049434112\tnext=80918404096\toptimizer=adam",
    REC_FIELD("GRAPH", ID, "the graph")
    REC_FIELD("BATCH", COUNT, "samples in a step")
    REC_FIELD("MEMORY", AMOUNT,
          "memory needed with this batch, bytes: the sum of weights, gradients, "
          "optimizer_state and outputs"),
    REC_KEY("weights", AMOUNT, "bytes")
    REC_KEY("gradients", AMOUNT, "gradients of the weights, bytes")
    REC_KEY("optimizer_state", AMOUNT, "state that the optimizer keeps, bytes")
    REC_KEY("outputs", AMOUNT, "outputs of layers that the backward pass reads, bytes")
    REC_KEY("limit", AMOUNT, "the memory of the server, bytes")
    REC_KEY("next", AMOUNT, "memory needed with one sample more, bytes")
    REC_KEY("optimizer", TEXT,
          "the optimizer; without it MEMORY follows the published rule, see "
          "footprint(1)"))

REC_ROW(CLUSTER, ALONE, "cluster",
    "The cluster that follows. Its fields depend on KIND.",
    NULL,
    REC_FIELD("KIND", ID,
          "ramp, island, fat-tree, rail, torus, dragonfly or custom"),
)
REC_KIND_ROW(CLUSTER, ramp,
    "C communication groups of R racks of S servers; a server is named c-r-s.",
    "cluster\tramp\t4\t4\t2\t1600000000000\t80000000000\tpropagation=5e-8\tio=1e-7",
    REC_FIELD("KIND", ID, "ramp")
    REC_FIELD("C", COUNT, "communication groups")
    REC_FIELD("R", COUNT, "racks per group, at most C")
    REC_FIELD("S", COUNT, "servers per rack")
    REC_FIELD("BANDWIDTH", AMOUNT, "bandwidth of a node, bytes/s")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("propagation", AMOUNT, "propagation latency, seconds")
    REC_KEY("io", AMOUNT, "latency of a node's input or output, seconds")
    REC_KEY("collective_rate", TEXT,
          "bandwidth of a transceiver in a collective: published (bandwidth/C/C, the "
          "default) or node (bandwidth/C)"))

REC_KIND_ROW(CLUSTER, island,
    "N servers behind one switch that never blocks, as the GPUs of a node with NVSwitch; "
    "servers are named 0, 1, ....",
    "cluster\tisland\t8\t300000000000\t2e-6\t80000000000",
    REC_FIELD("KIND", ID, "island")
    REC_FIELD("N", COUNT, "servers")
    REC_FIELD("BANDWIDTH", AMOUNT, "of a server, in each direction, bytes/s")
    REC_FIELD("LATENCY", AMOUNT, "of a message, seconds")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("algorithm", TEXT,
          "how the sync deps of an op are exchanged: direct (each part with each other, "
          "the default), ring, tree (two binary trees, each with half of the bytes), "
          "halving-doubling or in-switch (the switch adds up)")
    REC_KEY("system", TEXT,
          "the machine in tables of measured times of collectives, as SYSTEM of a "
          "series: for --collective-table of sim and alloc"))

REC_KIND_NAMED(CLUSTER, fat_tree, "fat-tree",
    "A fat tree: hosts below leaf switches, these below the switches of pods, these "
    "below the spine. All links have BANDWIDTH in each direction. A route goes up only "
    "as far as needed, and chooses among links up by its destination (d-mod-k). A server "
    "is named pod.leaf.host, or with gpus= pod.leaf.node.gpu.",
    "cluster\tfat-tree\t4x4x8\t50000000000\t1e-6\t80000000000\ttaper=2\tpod_taper=2\t"
    "gpus=8\tadapters=4\tinside=300000000000\tinside_latency=2e-6\talgorithm=ring",
    REC_FIELD("KIND", ID, "fat-tree")
    REC_FIELD("SHAPE", TEXT,
          "PxLxH: P pods of L leaves of H hosts; LxH: leaves below one spine; K: the "
          "K-ary fat tree, of K pods of K/2 leaves of K/2 adapters")
    REC_FIELD("BANDWIDTH", AMOUNT, "of a link, in each direction, bytes/s")
    REC_FIELD("LATENCY", AMOUNT, "of a link, seconds; a route has the sum of its links")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("taper", AMOUNT,
          "links down of a leaf over its links up (default 1: full bandwidth)")
    REC_KEY("pod_taper", AMOUNT, "the same of the switches of a pod")
    REC_KEY("gpus", COUNT,
          "a host is a node of so many servers, which a switch of its own joins (default "
          "1: hosts are servers)")
    REC_KEY("adapters", COUNT,
          "of a node: each is for gpus/adapters servers next to each other, and has a "
          "link to the leaf (default: one for each server). Servers that share one reach "
          "it over the switch in the node")
    REC_KEY("inside", AMOUNT,
          "bandwidth of a server to the switch in its node, in each direction, bytes/s")
    REC_KEY("inside_latency", AMOUNT,
          "of a message in a node, seconds (default: LATENCY)")
    REC_KEY("algorithm", TEXT,
          "how the sync deps of an op are exchanged, an all-reduce: direct (each part "
          "with each other, the default), ring, tree (two binary trees, each with half "
          "of the bytes), halving-doubling, in-switch (switches add up), or hierarchical "
          "(in each node, then among nodes, then in each node). Other collectives go by "
          "it as well, see docs/networks.md")
    REC_KEY("system", TEXT, "as of an island"))

REC_KIND_ROW(CLUSTER, rail,
    "Nodes of S servers with an adapter each. Adapter i of all nodes of a group leads to "
    "the same leaf, rail i of the group; a spine for each rail joins the groups. A "
    "message to a server of another number goes inside its node to the server of that "
    "number first. A server is named group.node.number, or node.number if there is one "
    "group.",
    "cluster\trail\t2\t4\t8\t50000000000\t1e-6\t450000000000\t80000000000\t"
    "inside_latency=2e-6\ttaper=2\talgorithm=hierarchical",
    REC_FIELD("KIND", ID, "rail")
    REC_FIELD("GROUPS", COUNT, "groups of nodes")
    REC_FIELD("NODES", COUNT, "nodes of a group")
    REC_FIELD("S", COUNT, "servers of a node")
    REC_FIELD("BANDWIDTH", AMOUNT, "of a link of a rail, in each direction, bytes/s")
    REC_FIELD("LATENCY", AMOUNT, "of such a link, seconds")
    REC_FIELD("INSIDE", AMOUNT,
          "bandwidth of a server to the switch in its node, in each direction, bytes/s")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("inside_latency", AMOUNT,
          "of a message in a node, seconds (default: LATENCY)")
    REC_KEY("taper", AMOUNT,
          "links down of a leaf over its links up to the spine (default 1)")
    REC_KEY("algorithm", TEXT, "as of a fat-tree")
    REC_KEY("system", TEXT, "as of an island"))

REC_KIND_ROW(CLUSTER, torus,
    "A torus of two or three dimensions: a server has a link to each neighbour. Routes "
    "go along one dimension after the other, in the order of SHAPE, the shorter way "
    "around; of two equal ways forward. A server is named x.y or x.y.z.",
    "cluster\ttorus\t4x4x8\t50000000000\t1e-6\t32000000000\tbandwidth_y=50000000000\t"
    "bandwidth_z=25000000000\talgorithm=ring",
    REC_FIELD("KIND", ID, "torus")
    REC_FIELD("SHAPE", TEXT, "XxY or XxYxZ, servers along each dimension")
    REC_FIELD("BANDWIDTH", AMOUNT, "of a link, in each direction, bytes/s")
    REC_FIELD("LATENCY", AMOUNT, "of a link, seconds; a route has the sum of its links")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("bandwidth_y", AMOUNT,
          "of the links along the second dimension (default: BANDWIDTH)")
    REC_KEY("bandwidth_z", AMOUNT,
          "of the links along the third dimension (default: BANDWIDTH)")
    REC_KEY("algorithm", TEXT,
          "how the sync deps of an op are exchanged, and other collectives: direct (the "
          "default), ring, tree, halving-doubling, or torus (along one dimension after "
          "the other), for which servers must be a box of the torus"))

REC_KIND_ROW(CLUSTER, dragonfly,
    "Groups of routers; the routers of a group are joined each to each other, the groups "
    "by global links. Routes are minimal. A server is named group.router.host.",
    "cluster\tdragonfly\t9\t4\t2\t25000000000\t1e-6\t80000000000\tlocal=25000000000\t"
    "global=25000000000\tglobal_latency=2e-6\tlinks=2\talgorithm=tree",
    REC_FIELD("KIND", ID, "dragonfly")
    REC_FIELD("GROUPS", COUNT, "groups")
    REC_FIELD("ROUTERS", COUNT, "routers of a group")
    REC_FIELD("HOSTS", COUNT, "servers of a router")
    REC_FIELD("BANDWIDTH", AMOUNT,
          "of the link of a server, in each direction, bytes/s")
    REC_FIELD("LATENCY", AMOUNT, "of a link, seconds; a route has the sum of its links")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("local", AMOUNT,
          "bandwidth between two routers of a group (default: BANDWIDTH)")
    REC_KEY("global", AMOUNT, "bandwidth of a global link (default: BANDWIDTH)")
    REC_KEY("global_latency", AMOUNT,
          "latency of a global link, seconds (default: LATENCY)")
    REC_KEY("links", COUNT,
          "global links of a router (default: HOSTS). Each two groups are joined by "
          "equally many; what is left over is not used")
    REC_KEY("algorithm", TEXT, "direct (the default), ring, tree or halving-doubling"))

REC_KIND_ROW(CLUSTER, custom,
    "A network of your own: link records follow, which name its nodes, and route "
    "records. A message takes the route with the fewest links; of these one with the "
    "least latency; of these the one whose last link that differs comes first. All nodes "
    "forward, servers too.",
    "cluster\tcustom\tgpu0,gpu1\t80000000000\talgorithm=ring\tties=source",
    REC_FIELD("KIND", ID, "custom")
    REC_FIELD("SERVERS", IDS, "the names of the servers; all other nodes only forward")
    REC_FIELD("MEMORY", LIMIT, "memory of a server, bytes"),
    REC_KEY("ties", TEXT,
          "first (the default), or source: of n links that lead to a node equally well, "
          "messages of server i take number i mod n, so that all are used")
    REC_KEY("algorithm", TEXT, "as of a dragonfly"))

REC_ROW(LINK, CLUSTER, "link",
    "A link of a custom cluster, in one direction. Two nodes have one link each way.",
    "link\tgpu0\tswitch\t300000000000\t1e-6\tboth=1",
    REC_FIELD("FROM", ID, "a node: a server of the cluster, or any other name")
    REC_FIELD("TO", ID, "another node")
    REC_FIELD("BANDWIDTH", AMOUNT, "bytes/s, above 0")
    REC_FIELD("LATENCY", AMOUNT, "seconds"),
    REC_KEY("both", COUNT, "1: there is a link from TO to FROM, too, with the same "
          "bandwidth of its own (default 0)"))

REC_ROW(ROUTE, CLUSTER, "route",
    "The way of messages from one server of a custom cluster to another one, in the "
    "place of the shortest one; it stands behind its links. A link that it has twice "
    "carries the bytes twice.",
    "route\tgpu0\tgpu1\tswitch,spine,switch2",
    REC_FIELD("FROM", ID, "a server")
    REC_FIELD("TO", ID, "another server")
    REC_FIELD("VIA", IDS, "the nodes between them, in order"),
)

REC_ROW(SERVER, CLUSTER, "server",
    "A straggler: a server of the cluster that is slower than the others, or late. The "
    "record stands behind that of its cluster, which may be of any kind; a server has "
    "one at most.",
    "server\t3\tspeed=0.5\tdelay=0.1",
    REC_FIELD("NAME", ID, "the server, as alloc records name it"),
    REC_KEY("speed", FRACTION,
          "above 0: its ops take COMPUTE / speed (default 1)")
    REC_KEY("delay", AMOUNT,
          "seconds by which the first op that it runs in a step starts later (default "
          "0)"))

REC_ROW(FAULT, CLUSTER, "fault",
    "A link that degrades, fails or recovers while jobs run. The record stands behind "
    "that of its cluster, which must be of a kind with links; faults stand in order of "
    "TIME. Routes stay as they are. It needs sim --contention.",
    "fault\t3600\tleaf 0\tspine 1\t0.5\tboth=1",
    REC_FIELD("TIME", AMOUNT, "seconds, on the clock of the jobs")
    REC_FIELD("FROM", TEXT, "a node of the cluster, as metrics --links names it")
    REC_FIELD("TO", TEXT, "the node to which the link leads")
    REC_FIELD("FACTOR", FRACTION,
          "from TIME on the link has FACTOR times its bandwidth; 0: it has failed, 1: it "
          "is well again"),
    REC_KEY("both", COUNT, "1: the same for the link from TO to FROM (default 0)"))

REC_ROW(LAYOUT, ALONE, "layout",
    "Where the ops of a graph go, on slots 0 to SLOTS-1; place records follow. Written "
    "once and used by every alloc that fits it.",
    "layout\tL1\tvgg16/4\t4",
    REC_FIELD("ID", ID, "its name, unique in the stream")
    REC_FIELD("GRAPH", ID, "the graph it places")
    REC_FIELD("SLOTS", COUNT, "how many servers it needs"),
)

REC_ROW(PLACE, LAYOUT, "place",
    "One op of a layout. Among equal ops of one server, the one placed later runs first. "
    "The lanes of a server run beside each other. On a lane either all ops have order=, "
    "or none has; those that have it are never preempted.",
    "place\tL1\t2a\t0",
    REC_FIELD("LAYOUT", ID, "its layout")
    REC_FIELD("OP", ID, "the op")
    REC_FIELD("SLOT", COUNT, "where it goes, 0 to SLOTS-1"),
    REC_KEY("priority", NUMBER,
          "higher runs first on its lane; without it the shortest op runs first")
    REC_KEY("lane", ID,
          "the lane of the server on which it runs, as compute or send; without it, the "
          "lane that has no name")
    REC_KEY("order", COUNT,
          "its lane runs strictly in ascending order: it waits for its next op, also if "
          "later ones are ready; different for each op of a lane"))

REC_ROW(TRANSFER, LAYOUT, "transfer",
    "The channel of a dep of a layout, behind its places. Between two servers each "
    "channel sends one transfer at a time, the ready one of the highest priority, which "
    "interrupts others; without priority= the one that takes least time alone. A dep "
    "without a transfer waits for no channel. Between ops of one server it has no "
    "meaning.",
    "transfer\tL1\t2a\t3a\t0\tpriority=2",
    REC_FIELD("LAYOUT", ID, "its layout")
    REC_FIELD("SRC", ID, "the op that the dep leaves")
    REC_FIELD("DST", ID, "the op that it leads to")
    REC_FIELD("CHANNEL", COUNT,
          "the number of a channel from the server of SRC to that of DST"),
    REC_KEY("priority", NUMBER,
          "higher goes first on its channel, and before all that have none"))

REC_ROW(ALLOC, ALONE, "alloc",
    "A job starts: GRAPH, laid out as LAYOUT, on these servers.",
    "alloc\t7\tvgg16/4\tL1\t1000\t0-0-0,0-1-0,1-0-0,1-1-0",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("GRAPH", ID, "the alternative that was chosen")
    REC_FIELD("LAYOUT", ID, "the layout")
    REC_FIELD("TIME", AMOUNT, "when it starts, seconds")
    REC_FIELD("SERVERS", IDS, "the server of each slot"),
    REC_KEY("degree", COUNT,
          "number of parts that each op was to be split into, if it is not the number of "
          "servers"))

REC_ROW(BLOCK, ALONE, "block",
    "A job is turned away. CAUSE: no_servers (no server is free; on a cluster without "
    "blocks, as an island: fewer are free than an op has parts; by first-degree: fewer "
    "than the degree of each alternative), no_block (no block of free servers has a "
    "legal shape; only on a cluster with blocks), "
    "no_memory (such blocks, or free servers, have too little memory), "
    "deadline (it would finish too late), queue_full (too many jobs wait), policy (it "
    "could have started or waited, and was refused), unfinished (it was running when the "
    "simulation ended). Of a whole action of an agent, the rule that it breaks: "
    "every_op_placed, server_in_service, one_job_per_server, legal_block, "
    "hold_and_release (which a heuristic may break, too). Of tasks: "
    "failed, input_failed (it is not run because something "
    "that it reads was not made), not_started (the run ended before).",
    "block\t8\t2000\tno_servers\tgraph=vgg16/8\tmodel=vgg16",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("TIME", AMOUNT, "when, seconds")
    REC_FIELD("CAUSE", ID, "why"),
    REC_KEY("graph", ID, "the last alternative that was tried")
    REC_KEY("op", ID, "no_memory: the op that found no room; of a rule: which breaks it")
    REC_KEY("server", ID, "of a rule: on which server")
    REC_KEY("needs", AMOUNT, "no_memory: what that op, or each part of it, needs, bytes")
    REC_KEY("missing", AMOUNT,
          "no_memory: bytes that are missing on the block of free servers that has the "
          "most room")
    REC_KEY("memory", AMOUNT, "no_memory: what the job needs in all, bytes; as in done")
    REC_KEY("start", PAST,
          "unfinished, failed: when it started, seconds; without it, it waited")
    REC_KEY("servers", COUNT, "unfinished, failed: servers (of a task: cores) it had")
    REC_KEY("busy", FRACTION, "unfinished: as in done")
    REC_KEY("task", ID, "input_failed: the task that failed")
    REC_KEY("status", ID, "of a task that failed, as in its last attempt")
    REC_KEY("model", TEXT, "its network")
    REC_KEY("arrival", PAST, "when it arrived, seconds")
    REC_KEY("degree", COUNT, "the degree= of that graph")
    REC_KEY("sequential", AMOUNT, "sum of all ops' compute in a step, seconds")
    REC_KEY("steps", COUNT, "training steps")
    REC_KEY("deadline", LIMIT, "as in its job, seconds from arrival")
    REC_KEY("demand_memory", AMOUNT, "as in done")
    REC_KEY("demand_bytes", AMOUNT, "as in done"))

REC_ROW(POLICY, ALONE, "policy",
    "The heuristics by which jobs could be placed when a learned chooser was trained.",
    "policy\tfirst-fit,compact",
    REC_FIELD("HEURISTIC", IDS, "compact, ..., as in a list of --heuristic"),
)

REC_ROW(EXPERT, ALONE, "expert",
    "An expert of a learned chooser. The weights that follow are those of this expert. "
    "The expert decides whose four features are nearest to those of the jobs so far: of "
    "those for the cluster; if there are none, of those for any; if there are none, of "
    "all.",
    "expert\t1\tload=0.6\tneed=0.02\tspread=0.06\tvariation=0",
    REC_FIELD("NUMBER", COUNT, "1, 2, ..."),
    REC_KEY("load", NUMBER, "value of this feature at the expert's centre")
    REC_KEY("need", NUMBER, "the same")
    REC_KEY("spread", NUMBER, "the same")
    REC_KEY("variation", NUMBER, "the same")
    REC_KEY("cluster", TEXT, "the only one that it was trained on; without it, any")
    REC_KEY("after", COUNT,
          "other experts decide about so many jobs at the start; without it, 0"))

REC_ROW(WEIGHT, ALONE, "weight",
    "A weight of a learned chooser: the factor of a feature, or of the output of a "
    "hidden unit.",
    "weight\tload-left\t-1.25",
    REC_FIELD("INPUT", ID, "a feature, or unit-1, unit-2, ...")
    REC_FIELD("VALUE", NUMBER, "the factor"),
    REC_KEY("unit", COUNT,
          "the hidden unit that the product is added to; without it, the product is "
          "added to the score"))

REC_ROW(VALUE, ALONE, "value",
    "Opens a network that tells what a state of a cluster is worth: less than 0 by the "
    "jobs that will be blocked from then on. If the cluster has the same blocks, of the "
    "same shapes, with its servers in another order, a state is worth the mean of what "
    "the network says of it in up to four such orders: runs of servers back to front, or "
    "these and longer runs that consist of them. It belongs to the expert before it, and "
    "its unit records follow.",
    "value\ta 4x4x2 cluster\t32\tdiscount=0.99\twork=29940\tblocks=2,2,2,2,3,3",
    REC_FIELD("CLUSTER", TEXT, "which one it was trained for")
    REC_FIELD("SERVERS", COUNT, "how many that has, at most 64"),
    REC_KEY("discount", NUMBER, "what a job counts of the one before it")
    REC_KEY("margin", NUMBER,
          "how many jobs an answer must be worth more to take more servers than the "
          "fewest with which the job can start; without the key, 0")
    REC_KEY("work", NUMBER,
          "the mean work of a job, server-seconds. A server that is free after r has "
          "four inputs, 1 - exp(-r / s), where s is 3/5 of work, a third of this, a "
          "ninth and a 27th. The value decides only if the mean of the jobs is half to "
          "twice as much. Without this key it always does, and work is the mean of the "
          "jobs so far")
    REC_KEY("units", COUNT,
          "those of the first layer: a multiple of 16, at most 256; without the key, 128")
    REC_KEY("second", COUNT,
          "those of the second layer: 32 or 64; without the key, 32")
    REC_KEY("ordered", COUNT,
          "1: the inputs of all servers come once more, behind those of blocks, with the "
          "one first that is free last; without the key, they do not")
    REC_KEY("blocks", TEXT,
          "the sizes of blocks, one for each of their shapes, at most 32. A block has "
          "the inputs of its server that is free last; of each shape the four means over "
          "its blocks are inputs, and then the four least. Of a shape with more than 32 "
          "blocks 32 are looked at, evenly spaced")
    REC_KEY("kinds", TEXT,
          "if jobs come in rounds, in which each of some kinds comes once: their "
          "sequential times over the mean, ascending, at most 16. A kind has an input, "
          "after all others: 1 if it is still to come in the round, else 0. In "
          "streams that have not come in rounds of such kinds, a tenth more or less, all "
          "of them are the mean, (N + 1) / 2N of N kinds"))

REC_ROW(UNIT, ALONE, "unit",
    "A unit of a network, in order of layers: those that add up the inputs of all "
    "servers and blocks, those that add up these units, and the result. Negative sums of "
    "the first two layers become 0.",
    "unit\t3\t76.5,0.1,-0.2",
    REC_FIELD("LAYER", COUNT, "1, 2 or 3")
    REC_FIELD("WEIGHTS", TEXT, "its bias, then the weight of each of its inputs"),
)

REC_ROW(OFFER, ALONE, "offer",
    "Sent to an agent before ask: an alternative of the job. One that can start has a "
    "key for each feature of a learned chooser; one that cannot has cause=.",
    "offer\t7\tvgg16/4\t4\t4\t172.77\t9638.7\tone=1\tservers=0.125\tslack=0.93",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("GRAPH", ID, "the alternative")
    REC_FIELD("DEGREE", COUNT,
          "degree= of the graph, or the largest number of parts that an op has")
    REC_FIELD("SERVERS", COUNT, "how many servers it would take; 0: it cannot be placed")
    REC_FIELD("STEP", LIMIT, "time of a training step, seconds; inf: it cannot be placed")
    REC_FIELD("FINISH", LIMIT,
          "when it would complete, seconds; inf: it cannot be placed"),
    REC_KEY("place", ID, "with several heuristics: the one that would place it")
    REC_KEY("cause", ID,
          "why it cannot start: no_servers, no_block, no_memory, hold_and_release or "
          "deadline"))

REC_ROW(ASK, ALONE, "ask",
    "Sent to an agent, which answers what is done with the job. The alternatives (offer) "
    "come before it, in order of preference.",
    "ask\t7\t1000\tmodel=vgg16\tarrival=1000\tsteps=50\tsequential=690.5\t"
    "deadline=9321.8\t"
    "free=16\trunning=3\twaiting=0",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("TIME", AMOUNT, "now, seconds"),
    REC_KEY("model", TEXT, "its network")
    REC_KEY("arrival", PAST, "when it arrived, seconds")
    REC_KEY("steps", COUNT, "training steps")
    REC_KEY("sequential", AMOUNT, "sum of all ops' compute in a step, seconds")
    REC_KEY("deadline", LIMIT, "as in its job, seconds from arrival")
    REC_KEY("free", COUNT, "servers that are free")
    REC_KEY("running", COUNT, "jobs that run")
    REC_KEY("waiting", COUNT, "jobs that wait, with this one if it has waited")
    REC_KEY("idle", TEXT,
          "to an agent of whole actions: the servers that are free, separated by commas"))

REC_ROW(START, ALONE, "start",
    "Sent to an agent of whole actions: a job has started.",
    "start\t7\tvgg16/2\t1000\t18267.5\t0-0-0,1-0-0\tstep=345.35\tcomm=0.11\t"
    "comp=345.24\tbusy=1\tsequential=690.5",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("GRAPH", ID, "what it runs")
    REC_FIELD("TIME", AMOUNT, "when it started, seconds")
    REC_FIELD("FINISH", LATER, "when it will be complete, seconds")
    REC_FIELD("SERVERS", IDS, "the servers that it holds until then"),
    REC_KEY("step", AMOUNT, "time of one step, seconds")
    REC_KEY("comm", AMOUNT, "as in done")
    REC_KEY("comp", AMOUNT, "as in done")
    REC_KEY("busy", FRACTION, "as in done")
    REC_KEY("sequential", AMOUNT, "sum of all ops' compute in a step, seconds"))

REC_ROW(SPLIT, ALONE, "split",
    "Before an agent's answer: an op of the job gets this many parts. With records place "
    "and transfer, it makes a whole action.",
    "split\t7\t2\t4",
    REC_FIELD("JOB", ID, "the job that was asked about")
    REC_FIELD("OP", ID, "a forward op of the graph in the answer; its twin gets as many")
    REC_FIELD("PARTS", COUNT, "how many"),
)

REC_ROW(ANSWER, ALONE, "answer",
    "An agent's answer to ask: the alternative that the job starts on.",
    "answer\t7\tvgg16/4",
    REC_FIELD("JOB", ID, "the job that was asked about")
    REC_FIELD("GRAPH", ID,
          "one of its alternatives (if that cannot start, the job waits or is blocked by "
          "its cause); or -, which refuses the job"),
    REC_KEY("cause", ID,
          "the cause of a refusal: policy (also without this key), or no_servers, with "
          "which the job may wait")
    REC_KEY("place", ID,
          "the heuristic that places the job; without it, the first one with which the "
          "alternative can start, after an action the first of all")
    REC_KEY("sizes", ID, "after split: reference or gradient, as partition --sizes")
    REC_KEY("sync", ID,
          "after split: deps, all-gather or all-reduce, as partition --sync"))

REC_ROW(DONE, ALONE, "done",
    "A job is complete. step, comm, comp, busy and sequential are those of one training "
    "step; comm and comp are the times during which something was sent and something was "
    "computed, and overlap counts in both.",
    "done\t7\tvgg16/4\t1000\t1000\t9638.7\tmodel=vgg16\tsteps=50\tstep=172.77\t"
    "comm=0.148\tcomp=172.62\tservers=4\tbusy=0.999\tsequential=690.5",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("GRAPH", ID, "what it ran")
    REC_FIELD("ARRIVAL", AMOUNT, "seconds")
    REC_FIELD("START", LATER, "seconds")
    REC_FIELD("FINISH", LATER, "START + steps * step, seconds"),
    REC_KEY("model", TEXT, "name of the network")
    REC_KEY("steps", COUNT, "training steps")
    REC_KEY("step", AMOUNT, "time of one step, seconds")
    REC_KEY("comm", AMOUNT, "time in a step with data on the way, seconds")
    REC_KEY("comp", AMOUNT, "time in a step with an op running, seconds")
    REC_KEY("servers", COUNT, "servers it used")
    REC_KEY("busy", FRACTION, "server-seconds computing / (servers * step)")
    REC_KEY("sequential", AMOUNT, "sum of all ops' compute, seconds")
    REC_KEY("flows", COUNT,
          "deps that cross servers with bytes to move, and such colls of kind send")
    REC_KEY("collectives", COUNT, "collective operations in a step, other colls included")
    REC_KEY("deadline", LIMIT, "as in its job, seconds from arrival")
    REC_KEY("degree", COUNT, "the graph's degree=")
    REC_KEY("memory", AMOUNT,
          "memory that it holds on all its servers, bytes: the sum of MEMORY over its "
          "ops, in which an op and its twin on one server count once, and of the tasks "
          "on a server only the largest")
    REC_KEY("peak_memory", AMOUNT,
          "memory that it holds on the server on which it holds most, bytes; if ops have "
          "hold=, at the instant of the step at which that is most")
    REC_KEY("op_memory", AMOUNT,
          "sum of MEMORY over all its ops, forward and backward, bytes: the published "
          "compute throughput counts these bytes, of which a server holds fewer")
    REC_KEY("dep_bytes", AMOUNT,
          "bytes of all its deps; of a coll of n ops 2 (n - 1) BYTES if it is an "
          "all-reduce, BYTES of a send, (n - 1) BYTES of the other kinds")
    REC_KEY("flow_bytes", AMOUNT,
          "bytes of the deps that cross servers; of a coll the same with n servers")
    REC_KEY("demand_memory", AMOUNT, "as op_memory, before it was partitioned")
    REC_KEY("demand_bytes", AMOUNT, "as dep_bytes, before it was partitioned")
    REC_KEY("batch", COUNT, "the graph's batch=: samples in a step")
    REC_KEY("sequence", COUNT, "the graph's sequence=: tokens in a sample")
    REC_KEY("flops", AMOUNT,
          "floating-point operations of the model in a step, without what the backward "
          "pass recomputes, see metrics(1); absent if the ops of the graph have no "
          "flops=")
    REC_KEY("peak", AMOUNT, "the graph's peak=: FLOP/s of one server at most")
    REC_KEY("alone", AMOUNT,
          "sim --contention: time of one step if no other job sent anything and no link "
          "had a fault, seconds; step is then the mean of its steps")
    REC_KEY("waited", AMOUNT,
          "sim --contention: time from its alloc record to START, seconds, because jobs "
          "that were slowed still had its servers; absent if it is 0")
    REC_KEY("healthy", AMOUNT,
          "time of one step on the same servers if they were no stragglers, no other job "
          "sent anything and no link had a fault, seconds; absent if the cluster has no "
          "stragglers"))

REC_ROW(RUN, ALONE, "run",
    "An op ran on a server (first step; a preempted op has several).",
    "run\t7\t2a\t0-0-0\t1000\t1000.5\tpass=forward\ttype=Conv2d",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("OP", ID, "the op")
    REC_FIELD("SERVER", ID, "where")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds"),
    REC_KEY("pass", PASS, "that of the op; none of a task")
    REC_KEY("lane", ID, "the lane of the server on which it ran, if that has a name")
    REC_KEY("type", TEXT, "that of the op, if it has one")
    REC_KEY("label", TEXT, "that of the op, if it has one"))

REC_ROW(SEND, ALONE, "send",
    "Data moved between two servers (first step).",
    "send\t7\t2a\t3b\t0-0-0\t0-1-0\t1000.5\t1000.6\t1024",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("SRC", ID, "the op that produced")
    REC_FIELD("DST", ID, "the op that consumes")
    REC_FIELD("FROM", ID, "server")
    REC_FIELD("TO", ID, "server")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("BYTES", AMOUNT, "bytes"),
)

REC_ROW(EXCHANGE, ALONE, "exchange",
    "A coll of a graph while it is on its way (first step).",
    "exchange\t7\tsync3\tall-reduce\t0-0-0,0-1-0\t1000.5\t1000.7\t4.1e8\tlane=data",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("COLL", ID, "the coll")
    REC_FIELD("KIND", EXCHANGE, "as of the coll")
    REC_FIELD("SERVERS", IDS, "those of its members")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("BYTES", AMOUNT, "as of the coll"),
    REC_KEY("lane", TEXT, "that of the coll, if it has one"))

REC_ROW(LOAD, ALONE, "load",
    "What a link of the cluster has carried (sim --links). Links that carried nothing "
    "have no record.",
    "load\t0.1\tleaf 0\t5e9\t2.5\t10\t1e9\tshare=0.5\tlevel=host to leaf\tlinks=8",
    REC_FIELD("FROM", TEXT, "a node of the cluster, as fault records name it")
    REC_FIELD("TO", TEXT, "the node to which the link leads")
    REC_FIELD("BYTES", AMOUNT,
          "bytes that it has carried. Of a job that was unfinished the part of its last "
          "step counts that was over, by time")
    REC_FIELD("BUSY", AMOUNT, "seconds in which something moved over it")
    REC_FIELD("SECONDS", AMOUNT, "the time simulated, from 0 on, seconds")
    REC_FIELD("CAPACITY", AMOUNT, "the mean over that time, faults included, bytes/s"),
    REC_KEY("share", AMOUNT, "BYTES / (CAPACITY * SECONDS)")
    REC_KEY("level", TEXT, "what its ends are: host to leaf, leaf to spine, ...")
    REC_KEY("links", COUNT, "links of that level, also those that carried nothing"))

REC_ROW(RATE, ALONE, "rate",
    "What the first step of a job sends over a link, while its rate stays as it is (sim "
    "--timeline --links). The sum of RATE * (END - START) is what a step sends over it.",
    "rate\t7\t0.1\tleaf 0\t0.5\t2\t1.25e9\t1e10",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("FROM", TEXT, "a node of the cluster, as in load records")
    REC_FIELD("TO", TEXT, "the node to which the link leads")
    REC_FIELD("START", AMOUNT, "from then on, seconds")
    REC_FIELD("END", LATER, "until then, seconds")
    REC_FIELD("RATE", AMOUNT, "bytes/s of this job")
    REC_FIELD("CAPACITY", AMOUNT, "of the link if it is well, bytes/s"),
    )

REC_ROW(HELD, ALONE, "held",
    "What a server holds in the first step of a job, while it stays as it is, if ops "
    "hold bytes (sim --timeline). Times in which it holds nothing have no record.",
    "held\t7\t0.1\t0.5\t2\t4e9",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("SERVER", ID, "the server")
    REC_FIELD("START", AMOUNT, "from then on, seconds")
    REC_FIELD("END", LATER, "until then, seconds")
    REC_FIELD("BYTES", AMOUNT, "that ops of the job hold"),
    )

REC_ROW(PART, ALONE, "part",
    "Where the first step of a job goes on one of its servers, if its ops are on lanes "
    "(sim --explain). The parts of a server add up to the step.",
    "part\t7\t0\tforward\t0.31",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("SLOT", COUNT, "the server, by its place in the job's list of servers")
    REC_FIELD("WHAT", TEXT,
          "forward, backward, task: ops on its main lane; or the lane of an exchange "
          "that it has on its way meanwhile, or messages; or wait")
    REC_FIELD("SECONDS", AMOUNT, "of the step"),
    )

REC_ROW(EXPLAIN, ALONE, "explain",
    "Why an exchange of the first step of a job takes as long as it does (sim "
    "--explain).",
    "explain\t7\t3\tmessage\t0.5\t9\t4\tlink\tdst=4\theld=1\tfrom=leaf 0\tto=spine 1\t"
    "bytes=4e9\town=0\tjob=0\tothers=1",
    REC_FIELD("JOB", ID, "the job")
    REC_FIELD("OP", ID, "the op that sends, or of which parts do; or the coll")
    REC_FIELD("KIND", TEXT,
          "message, collective, sync (of the parts of an op), or the kind of a coll")
    REC_FIELD("START", AMOUNT,
          "when the first of it leaves, seconds from START of the job")
    REC_FIELD("TIME", AMOUNT, "from then on until all of it has arrived, seconds")
    REC_FIELD("ALONE", AMOUNT,
          "the same if nothing else is sent, all of it leaves at once and no link has a "
          "fault, seconds")
    REC_FIELD("BY", TEXT,
          "what holds it back: link, latency, table (a measured time), or form (the "
          "formula of a cluster without links)"),
    REC_KEY("dst", ID,
          "the op that gets it, or of which parts do; none of a sync or coll")
    REC_KEY("held", AMOUNT,
          "the share of TIME for which that holds it back; where several links do, the "
          "one that does so longest is told")
    REC_KEY("from", TEXT, "the link: from this node")
    REC_KEY("to", TEXT, "to this one")
    REC_KEY("bytes", AMOUNT, "bytes of it over that link")
    REC_KEY("own", AMOUNT,
          "other flows on the link while it is held back there, on average: of the same "
          "exchange")
    REC_KEY("job", AMOUNT, "of other exchanges of the job")
    REC_KEY("others", AMOUNT, "of other jobs"))

REC_ROW(TRACE, ALONE, "trace",
    "Opens a trace of a spot cluster that was observed from START to END; its add and "
    "preempt records follow.",
    "trace\t0\t21300\tinstances=32",
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds"),
    REC_KEY("instances", COUNT,
          "instances at START; 0: there are only those that are added at START"))

REC_ROW(ADD, ALONE, "add",
    "Instances come. Records of a trace are in order of time.",
    "add\t60\t2\tids=node7,node8",
    REC_FIELD("TIME", AMOUNT, "seconds")
    REC_FIELD("COUNT", COUNT, "how many"),
    REC_KEY("ids", NAMES, "their names"))

REC_ROW(PREEMPT, ALONE, "preempt",
    "Instances are taken away.",
    "preempt\t780\t5",
    REC_FIELD("TIME", AMOUNT, "seconds")
    REC_FIELD("COUNT", COUNT, "how many"),
    REC_KEY("ids", NAMES, "which ones"))

REC_ROW(MODEL, ALONE, "model",
    "Figures that a random trace is drawn from.",
    NULL,
    REC_FIELD("KIND", ID, "spot")
    REC_FIELD("NAME", TEXT, "what was measured"),
)
REC_KIND_ROW(MODEL, spot,
    "Of a spot cluster. A list is VALUE:HOW_OFTEN,...",
    "model\tspot\tanchor\ttotal_minutes=355\tchance_preempt_minute=0.163\t"
    "chance_add_minute=0.144\tprob_big=0.0588\tregular_mean=2.54\tregular_std=1.95\t"
    "preempt_mean=2.41\tpreempt_std=2.09",
    REC_FIELD("KIND", ID, "spot")
    REC_FIELD("NAME", TEXT, "what was measured"),
    REC_KEY("node_rows", COUNT, "times at which the number of instances is known")
    REC_KEY("term_rows", COUNT, "times at which instances were preempted")
    REC_KEY("mttp_mean_s", AMOUNT, "mean time between changes, seconds")
    REC_KEY("mttp_std_s", AMOUNT, "its sample standard deviation")
    REC_KEY("total_minutes", AMOUNT,
          "from the start, where the log has one, or the first row to the last")
    REC_KEY("total_preemptions", AMOUNT, "instances")
    REC_KEY("total_additions", AMOUNT, "instances")
    REC_KEY("preemptions_per_minute", AMOUNT, "instances")
    REC_KEY("additions_per_minute", AMOUNT, "instances")
    REC_KEY("chance_preempt_minute", AMOUNT, "preemptions (events) a minute")
    REC_KEY("chance_add_minute", AMOUNT, "additions (events) a minute")
    REC_KEY("add_events", COUNT, "additions")
    REC_KEY("big_adds", COUNT, "additions of more than 10 instances")
    REC_KEY("prob_big", FRACTION, "their share")
    REC_KEY("prob_regular", FRACTION, "the share of the others")
    REC_KEY("regular_mean", AMOUNT, "instances in an addition that is not big")
    REC_KEY("regular_std", AMOUNT, "its sample standard deviation")
    REC_KEY("preempt_mean", AMOUNT, "instances in a preemption")
    REC_KEY("preempt_std", AMOUNT, "its sample standard deviation")
    REC_KEY("alt_true_mttp_s", AMOUNT, "mean time between preemptions, seconds")
    REC_KEY("alt_true_mttp_std_s", AMOUNT, "its sample standard deviation")
    REC_KEY("alt_big_mean", AMOUNT, "instances in a big addition")
    REC_KEY("preempt_shape", AMOUNT, "Weibull shape of preempt_spacings")
    REC_KEY("preempt_scale_s", AMOUNT, "Weibull scale, seconds")
    REC_KEY("add_shape", AMOUNT, "Weibull shape of add_spacings")
    REC_KEY("add_scale_s", AMOUNT, "Weibull scale, seconds")
    REC_KEY("start_instances", COUNT, "instances at the first row")
    REC_KEY("max_instances", COUNT, "the most there were")
    REC_KEY("preempt_spacings", TEXT, "seconds between preemptions, a list")
    REC_KEY("add_spacings", TEXT, "seconds between additions, a list")
    REC_KEY("preempt_counts", TEXT, "instances in a preemption, a list")
    REC_KEY("add_counts", TEXT, "instances in an addition, a list"))

REC_ROW(TRAIN, ALONE, "train",
    "An event of a training run. EVENT step: ID iterations are done and the next starts. "
    "reconfig (elastic): loss or growth number ID, after which SIZE of the instances "
    "that trained are left. The redundant model has also add, ready, remove, fatal, "
    "fallback, rendezvous_global, rendezvous_local, redo and config, where ID is the "
    "number of iterations done.",
    "train\t240\treconfig\t0\t31\tafter=32\tredo=10",
    REC_FIELD("TIME", AMOUNT, "seconds")
    REC_FIELD("EVENT", ID, "what")
    REC_FIELD("ID", COUNT, "its number")
    REC_FIELD("SIZE", COUNT, "instances that train (redundant: that are there)"),
    REC_KEY("after", COUNT, "SIZE after the reconfiguration")
    REC_KEY("redo", COUNT, "the iteration that training goes back to")
    REC_KEY("since", PAST, "work since this time was lost, seconds")
    REC_KEY("pipelines", COUNT, "of the configuration")
    REC_KEY("stages", COUNT, "of the configuration")
    REC_KEY("waiting", COUNT, "instances that wait for the next one")
    REC_KEY("fatal", COUNT, "fatal failures so far")
    REC_KEY("status", TEXT, "STOPPED, RENDEZVOUS or RUNNING"))

REC_ROW(STATE, ALONE, "state",
    "The instances of a training run from TIME on.",
    "state\t240\t32\t15\t0\tphase=reconfiguring",
    REC_FIELD("TIME", AMOUNT, "seconds")
    REC_FIELD("ACTIVE", COUNT, "instances in a pipeline")
    REC_FIELD("STANDBY", COUNT, "instances that are ready and wait")
    REC_FIELD("PREPARING", COUNT, "instances that are not ready yet"),
    REC_KEY("phase", TEXT, "training, degraded, reconfiguring or stalled"))

REC_ROW(ACCOUNT, ALONE, "account",
    "Where the time of a training run went. STATE useful: iterations that count; wasted: "
    "iterations lost and done again; reconfiguring; stalled: too few instances.",
    "account\tuseful\t632\t24860",
    REC_FIELD("STATE", ACCOUNT, "where it went")
    REC_FIELD("SECONDS", AMOUNT, "time in this state")
    REC_FIELD("INSTANCE_SECONDS", AMOUNT, "of all instances, in this state"),
)

REC_ROW(TRAINED, ALONE, "trained",
    "The end of a training run. Instance times are those of the whole run.",
    NULL,
    REC_FIELD("MODEL", ID, "elastic or redundant")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("STEPS", COUNT, "iterations done and not lost"),
    REC_KEY("name", TEXT, "what was trained")
    REC_KEY("target", COUNT, "iterations that the training asks for")
    REC_KEY("samples", AMOUNT, "samples an iteration")
    REC_KEY("preempted", COUNT, "instances taken away")
    REC_KEY("lost_active", COUNT, "those of them that trained")
    REC_KEY("added", COUNT, "instances that came")
    REC_KEY("active", AMOUNT, "instance-seconds in pipelines")
    REC_KEY("standby", AMOUNT, "instance-seconds waiting")
    REC_KEY("preparing", AMOUNT, "instance-seconds getting ready")
    REC_KEY("price", AMOUNT, "US$ an instance-hour, spot")
    REC_KEY("on_demand_price", AMOUNT, "US$ an instance-hour, on demand")
    REC_KEY("on_demand_instances", COUNT, "instances bought on demand instead")
    REC_KEY("on_demand_step", AMOUNT, "time of an iteration on them, seconds"))
REC_KIND_ROW(TRAINED, elastic,
    "Pipelines that are reconfigured when instances come and go.",
    "trained\telastic\t0\t900\t45\treconfigurations=1\tlost=12",
    REC_FIELD("MODEL", ID, "elastic or redundant")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("STEPS", COUNT, "iterations done and not lost"),
    REC_KEY("iterations", COUNT, "iterations done, lost ones too")
    REC_KEY("lost", NUMBER, "iterations to do again")
    REC_KEY("reconfigurations", COUNT, "losses and growths of the pipelines")
    REC_KEY("checkpoints", COUNT, "checkpoints that were completed")
    REC_KEY("start", COUNT, "instances at the start")
    REC_KEY("refused", COUNT, "instances that the capacity refused"))
REC_KIND_ROW(TRAINED, redundant,
    "Pipelines that compute a neighbour's stage too. Averages end with the last "
    "iteration, as published.",
    "trained\tredundant\t0\t900\t45\tname=BERT\tfatal=1\tlast=880",
    REC_FIELD("MODEL", ID, "elastic or redundant")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("STEPS", COUNT, "iterations done and not lost"),
    REC_KEY("degraded", AMOUNT, "seconds at the slower pace after a loss")
    REC_KEY("fatal", COUNT, "losses that redundancy could not cover")
    REC_KEY("rendezvous", COUNT, "configurations that were reached")
    REC_KEY("first", AMOUNT, "start of the first iteration, seconds")
    REC_KEY("last", AMOUNT, "end of the last iteration, seconds")
    REC_KEY("lifetime_mean", AMOUNT, "of an instance, seconds")
    REC_KEY("lifetime_median", AMOUNT, "seconds")
    REC_KEY("lifetime_stdev", AMOUNT, "of the sample, seconds")
    REC_KEY("preemption_mean", AMOUNT, "between preemptions, seconds")
    REC_KEY("preemption_median", AMOUNT, "seconds")
    REC_KEY("preemption_stdev", AMOUNT, "of the sample, seconds")
    REC_KEY("average_instances", AMOUNT, "up to the last iteration")
    REC_KEY("average_cost", AMOUNT, "US$ an hour, up to the last iteration")
    REC_KEY("average_performance", AMOUNT, "samples/s, from first to last")
    REC_KEY("average_value", AMOUNT, "samples/s for a US$ an hour"))

REC_ROW(BOUND, ALONE, "bound",
    "An upper bound of the number of jobs of a run that can start if no job waits, "
    "whichever alternatives are chosen.",
    "bound\t1000\t935.396201\table=1000\tservers=32",
    REC_FIELD("JOBS", COUNT, "jobs that arrive")
    REC_FIELD("ACCEPTED", AMOUNT,
          "upper bound of the jobs that can start, rounded to 1e-6"),
    REC_KEY("able", COUNT,
          "jobs that may be placed and meet their deadlines if no other job runs")
    REC_KEY("servers", COUNT, "servers in service")
    REC_KEY("whole", COUNT, "upper bound of the jobs that can start, of whole jobs")
    REC_KEY("gap", COUNT, "by which WHOLE may be too high: WHOLE less what was found")
    REC_KEY("nodes", COUNT, "of the tree of branch and bound")
    REC_KEY("reached", COUNT, "jobs that start in a schedule that was found"))

REC_ROW(PROFILE, ALONE, "profile",
    "Latency and throughput of one replica of a model on one kind of hardware, with "
    "batches of BATCH queries. The profiles of a model on a hardware are points of a "
    "curve; batches between two points are interpolated.",
    "profile\tresnet\tv100\t16\t0.1726456\t126.2",
    REC_FIELD("MODEL", ID, "the model")
    REC_FIELD("HARDWARE", ID, "what it runs on")
    REC_FIELD("BATCH", COUNT, "queries in a batch, at least 1")
    REC_FIELD("P99", AMOUNT, "99th percentile of the measured latency, seconds")
    REC_FIELD("THROUGHPUT", AMOUNT, "queries/s, above 0"),
)

REC_ROW(PRICE, ALONE, "price",
    "What a replica on a kind of hardware costs.",
    "price\tv100\t3",
    REC_FIELD("HARDWARE", ID, "the hardware")
    REC_FIELD("COST", AMOUNT, "US$ an hour, of one replica"),
)

REC_ROW(STAGE, ALONE, "stage",
    "A stage of a serving pipeline: a model behind a queue. If MODEL is -, queries pass "
    "at once: branches fork or join there.",
    "stage\tclassify\tresnet",
    REC_FIELD("NAME", ID, "its name, unique in the pipeline; not source or sink")
    REC_FIELD("MODEL", ID, "its model, or -"),
)

REC_ROW(EDGE, ALONE, "edge",
    "Queries go from stage SRC to stage DST. A stage without an edge to it is entered "
    "from source, a stage without an edge from it leads to sink. Where branches join, a "
    "stage waits until the query has come over all those edges to the stage that it "
    "takes.",
    "edge\tclassify\tnotify\tp=0.3",
    REC_FIELD("SRC", ID, "a stage, or source")
    REC_FIELD("DST", ID, "a stage, or sink"),
    REC_KEY("p", FRACTION,
          "probability that a query at SRC takes it; without it, all do"))

REC_ROW(CONFIG, ALONE, "config",
    "How a stage is run: REPLICAS of it on HARDWARE, each of which takes up to BATCH "
    "waiting queries at a time. With time= it changes REPLICAS and BATCH from that time "
    "on.",
    "config\tclassify\tv100\t16\t2",
    REC_FIELD("STAGE", ID, "the stage")
    REC_FIELD("HARDWARE", ID, "what its replicas run on")
    REC_FIELD("BATCH", COUNT,
          "queries in a batch, at most; from 1 to the largest profiled")
    REC_FIELD("REPLICAS", COUNT, "at least 1"),
    REC_KEY("delay", AMOUNT,
          "batching delay: time that a replica waits before it takes a batch, seconds")
    REC_KEY("load", AMOUNT, "arrivals at the stage that it was planned for, queries/s")
    REC_KEY("time", AMOUNT, "from when on, seconds")
    REC_KEY("ordered", AMOUNT,
          "with time=: when the replicas that are new at that time were ordered, "
          "seconds; they are paid for from then on"))

REC_ROW(ENVELOPE, ALONE, "envelope",
    "The arrivals that a pipeline was planned for: at most QUERIES arrive within any "
    "SECONDS.",
    "envelope\t0.25\t41\tresampled=48",
    REC_FIELD("SECONDS", AMOUNT, "width of the window, seconds")
    REC_FIELD("QUERIES", COUNT, "the most that arrived within it"),
    REC_KEY("resampled", COUNT,
          "the most within it in a sequence 20 times as long, made of "
          "pieces of the sample in random order"))

REC_ROW(PLANNED, ALONE, "planned",
    "The result of a planner; config records have the plan.",
    "planned\tcost\t8\tslo=0.3\tpercentile=99\tlatency=0.273\tthroughput=151.6\tlower=7",
    REC_FIELD("OBJECTIVE", ID, "cost (least cost) or throughput (most throughput)")
    REC_FIELD("COST", AMOUNT, "cost of all replicas, US$ an hour"),
    REC_KEY("slo", AMOUNT, "latency objective, seconds")
    REC_KEY("percentile", AMOUNT, "share of the queries that has to meet it, per cent")
    REC_KEY("latency", AMOUNT, "that percentile of the latency on the sample, seconds")
    REC_KEY("throughput", AMOUNT,
          "throughput of the pipeline, which its slowest stage limits, queries/s")
    REC_KEY("service", TEXT,
          "what 1/throughput of a profile was taken for: query; without it batch")
    REC_KEY("rate", AMOUNT, "arrivals in the sample, queries/s")
    REC_KEY("queries", COUNT, "queries in the sample")
    REC_KEY("late", COUNT, "queries of the sample whose latency is above the objective")
    REC_KEY("lower", AMOUNT,
          "proved: no configuration that meets the objective costs less, US$ "
          "an hour")
    REC_KEY("upper", AMOUNT, "proved: none within the budget takes more, queries/s")
    REC_KEY("holdout", COUNT,
          "queries that were not used for the plan, and on which it was tested")
    REC_KEY("redrawn", COUNT,
          "seed of the held-out queries, if they were drawn as the sample was; without "
          "it they are the last queries of the sample")
    REC_KEY("attained", AMOUNT,
          "share of the held-out queries that meet the objective, per cent")
    REC_KEY("attained_lower", AMOUNT,
          "lower end of the 95 per cent confidence interval of attained=")
    REC_KEY("attained_upper", AMOUNT, "upper end of that interval")
    REC_KEY("added", COUNT,
          "replicas that were added until attained_lower= met the objective; lower= "
          "holds for the plan without them")
    REC_KEY("carried", AMOUNT,
          "rate for which each stage has replicas: the upper end of the 95 per cent "
          "confidence interval of rate=, queries/s")
    REC_KEY("simulations", COUNT, "simulations that the search took"))

REC_ROW(ARRIVALS, ALONE, "arrivals",
    "How the queries that follow were drawn, so that they, or others like them, can be "
    "drawn again.",
    "arrivals\t1\trate=100\tcv=2",
    REC_FIELD("SEED", COUNT, "seed of all draws"),
    REC_KEY("rate", AMOUNT,
          "queries/s; with change=piecewise, the factor of the rates of its steps")
    REC_KEY("cv", AMOUNT,
          "coefficient of variation of the inter-arrival times, which have a gamma "
          "distribution")
    REC_KEY("spacing", TEXT,
          "instead of cv=: the distribution of the inter-arrival times, seconds")
    REC_KEY("change", TEXT, "how the rate changes: on-off, sinusoid or piecewise")
    REC_KEY("shape", TEXT,
          "the numbers of that change, as the option of its name takes them"))

REC_ROW(RUNG, ALONE, "rung",
    "The replicas and batches that a stage needs when RATE queries/s arrive at the "
    "pipeline. A tuner scales by these records. Records of one rate stand together, and "
    "rates ascend.",
    "rung\t150\tclassify\t16\t3\tstatic=2.4",
    REC_FIELD("RATE", AMOUNT, "arrivals at the pipeline, queries/s, above 0")
    REC_FIELD("STAGE", ID, "the stage")
    REC_FIELD("BATCH", COUNT,
          "queries in a batch, at most; from 1 to the largest profiled")
    REC_FIELD("REPLICAS", COUNT, "at least 1"),
    REC_KEY("static", AMOUNT,
          "cost of the stage in a plan that is made for this rate alone, perhaps on "
          "other hardware, US$ an hour"))

REC_ROW(QUERY, ALONE, "query",
    "A query arrives at a serving pipeline. Queries are in order of time.",
    "query\tq7\t0.0812",
    REC_FIELD("ID", ID, "its name, unique in the run")
    REC_FIELD("TIME", AMOUNT, "when, seconds, at most 1e12"),
)

REC_ROW(REPLY, ALONE, "reply",
    "A query has passed the pipeline.",
    "reply\tq7\t0.0812\t0.2801",
    REC_FIELD("ID", ID, "the query")
    REC_FIELD("ARRIVAL", AMOUNT, "when it came, seconds")
    REC_FIELD("FINISH", LATER, "when its last branch was done, seconds"),
)

REC_ROW(DROP, ALONE, "drop",
    "A query is dropped: it had waited too long when STAGE would have taken it.",
    "drop\tq8\t0.0812\t0.5812\tclassify",
    REC_FIELD("ID", ID, "the query")
    REC_FIELD("ARRIVAL", AMOUNT, "when it came, seconds")
    REC_FIELD("TIME", LATER, "when it was dropped, seconds")
    REC_FIELD("STAGE", ID, "where"),
)

REC_ROW(VISIT, ALONE, "visit",
    "A query went through a stage (with sim serve --trace).",
    "visit\tq7\tclassify\t0.0812\t0.09\t0.2168\t16",
    REC_FIELD("ID", ID, "the query")
    REC_FIELD("STAGE", ID, "the stage")
    REC_FIELD("ENQUEUED", AMOUNT, "when it came to its queue, seconds")
    REC_FIELD("STARTED", LATER, "when a replica took it, seconds")
    REC_FIELD("FINISHED", LATER, "when its batch was done, seconds")
    REC_FIELD("BATCH", COUNT, "queries in the batch"),
)

REC_ROW(SERVED, ALONE, "served",
    "What a stage did in a run, from START (the end of the warm-up, if there is one) to "
    "END.",
    "served\tclassify\t0\t503.2\thardware=v100\tbatch=16\tqueries=50001\tbatches=4297\t"
    "busy=396.2\twaiting=3139.1\tlongest=35\treplicas=503.2\tprice=3",
    REC_FIELD("STAGE", ID, "the stage")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds"),
    REC_KEY("hardware", ID, "what its replicas run on")
    REC_KEY("batch", COUNT, "queries in a batch, at most")
    REC_KEY("queries", COUNT, "queries that its replicas completed")
    REC_KEY("batches", COUNT, "batches of these queries")
    REC_KEY("busy", AMOUNT, "replica-seconds spent on batches")
    REC_KEY("waiting", AMOUNT, "query-seconds spent in its queue")
    REC_KEY("longest", COUNT, "largest number of queries in its queue")
    REC_KEY("replicas", AMOUNT,
          "replica-seconds in all, also of replicas that are idle or starting")
    REC_KEY("static_peak", AMOUNT,
          "with a tuner: cost of this stage in a plan for the highest rate of the run, "
          "US$ an hour")
    REC_KEY("price", AMOUNT, "US$ an hour, of one replica"))

REC_ROW(TASK, ALONE, "task",
    "A command. The results are as if the tasks were run one after the other; a task "
    "really waits only for those that it shares names with, as READS and WRITES say. "
    "These are names separated by commas, or - for none. A name is a path, dir/ for all "
    "files below a folder, or @NAME for anything else. In names and keys %2C stands for "
    "a comma, %09 for a TAB, %25 for %.",
    "task\tclean\t600\traw.csv\tclean.csv\tpython3 clean.py raw.csv clean.csv\tcost=12\t"
    "cores=2",
    REC_FIELD("ID", ID, "its name, unique in the stream")
    REC_FIELD("TIMEOUT", LIMIT, "longest time it may run, seconds; inf: any")
    REC_FIELD("READS", TEXT, "what it reads")
    REC_FIELD("WRITES", TEXT, "what it writes")
    REC_FIELD("COMMAND", TEXT,
          "words, quoted as in the shell; for the shell's expansions write sh -c '...'"),
    REC_KEY("cost", AMOUNT, "time that it is expected to take, seconds")
    REC_KEY("cores", COUNT, "processors that it needs, 1 or more")
    REC_KEY("memory", AMOUNT, "memory that it needs, bytes")
    REC_KEY("cwd", TEXT, "working directory")
    REC_KEY("env", TEXT, "NAME=VALUE,NAME=VALUE,... added to its environment")
    REC_KEY("stdin", TEXT,
          "file that is its standard input, or @ID.stdout or @ID.stderr of another task")
    REC_KEY("stdout", TEXT, "file that its standard output goes to")
    REC_KEY("stderr", TEXT, "file that its standard error goes to")
    REC_KEY("call", TEXT,
          "a request to a worker. COMMAND starts the worker, a program that stays alive "
          "and is given one request after the other, see runtasks(1)")
    REC_KEY("retries", COUNT,
          "retries after a failure; without it the runner says how many")
    REC_KEY("ok", TEXT, "any: it counts as done whatever its exit status is"))

REC_ROW(ATTEMPT, ALONE, "attempt",
    "A task was tried. Times count from the beginning of the run.",
    "attempt\tclean\t1\t0.002\t11.8\t0\tuser=11.2\tsystem=0.3\tmemory=104857600\thost=a\t"
    "began=1795219200.25",
    REC_FIELD("TASK", ID, "the task")
    REC_FIELD("NUMBER", COUNT, "1 for the first attempt of this run, ...")
    REC_FIELD("START", AMOUNT, "seconds")
    REC_FIELD("END", LATER, "seconds")
    REC_FIELD("STATUS", ID,
          "exit status; or the signal that ended it, such as SIGSEGV; or timeout; or the "
          "error with which it could not be started, such as ENOENT; of a call also "
          "no_answer and bad_answer"),
    REC_KEY("result", TEXT,
          "of a call: the result that its worker gave, escaped as in task")
    REC_KEY("stdout", TEXT,
          "of a call: where its standard output is, as its worker says")
    REC_KEY("stderr", TEXT, "of a call: where its standard error is, as its worker says")
    REC_KEY("user", AMOUNT,
          "processor time of all its processes in user mode, seconds; of a call only if "
          "its worker says it")
    REC_KEY("system", AMOUNT,
          "processor time of all its processes in the kernel, seconds")
    REC_KEY("memory", AMOUNT, "largest resident memory of one of its processes, bytes")
    REC_KEY("host", TEXT, "where")
    REC_KEY("began", AMOUNT, "when the run began, seconds since 1970"))

REC_ROW(RUNNER, ALONE, "runner",
    "In a log: a run of runtasks began, which wrote the records up to the next one of "
    "this type.",
    "runner\t5f0c1d2e3a4b5c6d\t8a6a4ad5-7d5e-4a0b-9d6e-0c1f2a3b4c5d\ta",
    REC_FIELD("RUN", ID, "name of the run, different for each")
    REC_FIELD("BOOT", ID,
          "the kernel's boot id, different each time that the machine is started")
    REC_FIELD("HOST", TEXT, "the machine"),
)

REC_ROW(PROCESS, ALONE, "process",
    "In a log: the process of a task was started. It leads a process group of its own, "
    "and it and what it starts have RUN.NUMBER in RAMPIPE_TASK in their environment.",
    "process\tclean\t1\t4711\t86400.25",
    REC_FIELD("TASK", ID, "the task")
    REC_FIELD("NUMBER", COUNT, "1 for the first process of the run, ...")
    REC_FIELD("PID", COUNT, "id of the process, and of its group")
    REC_FIELD("STARTED", AMOUNT, "seconds since the machine was started"),
)

REC_ROW(FILE, ALONE, "file",
    "In a log: the state of a file when TASK had written it. If TASK is -, no task had "
    "written it before, and it is the state when a task began that reads or overwrites "
    "it (the next task record).",
    "file\traw.csv\t-\tfile\tsize=1048576\tmtime=1795219200.250000000\tsum=2914839201",
    REC_FIELD("NAME", TEXT, "the file, or all below a folder, dir/; escaped as in task")
    REC_FIELD("TASK", ID, "the task that wrote it; -: none did")
    REC_FIELD("STATE", ID,
          "file, none (there was none), tree (all below a folder) or other (a folder, a "
          "device)"),
    REC_KEY("size", COUNT, "file: bytes")
    REC_KEY("mtime", TEXT,
          "file: when it was changed, seconds since 1970, to the nanosecond")
    REC_KEY("sum", COUNT, "file: the CRC-32 of its bytes (--check-content)")
    REC_KEY("digest", TEXT,
          "tree: of the names, sizes and times (--check-content: CRC-32) below")
    REC_KEY("given", COUNT,
          "1: from here on this state counts as found, not as written by tasks"))

REC_ROW(FENCE, ALONE, "fence",
    "Tasks after the fence begin when all tasks before it have ended.",
    "fence\tcollected",
    REC_FIELD("ID", ID, "its name"),
)

REC_ROW(CLIENT, ALONE, "client",
    "First of what a client sends to runtasks --listen: how its log is called.",
    "client\ttraining",
    REC_FIELD("NAME", ID, "1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot"),
)

REC_ROW(ERROR, ALONE, "error",
    "Last of what a client of runtasks --listen is told when its tasks could not all be "
    "taken, or the service cannot go on with them; no #end follows.",
    "error\ttraining:7: task 'a' comes twice",
    REC_FIELD("TEXT", TEXT, "what is wrong, and in which line of what the client sent"),
)

/* clang-format on */

#undef REC_ROW
#undef REC_KIND_ROW
#undef REC_KIND_NAMED
