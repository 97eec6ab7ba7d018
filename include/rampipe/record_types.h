/* The known record types: REC_TYPE(ENUMERATOR, word). Included by record.h and by the
 * table in lib/record/schema.c; a new type needs a line here and a row there. */
REC_TYPE(GRAPH, graph)
REC_TYPE(OP, op)
REC_TYPE(DEP, dep)
REC_TYPE(JOB, job)
REC_TYPE(CLUSTER, cluster)
REC_TYPE(LAYOUT, layout)
REC_TYPE(PLACE, place)
REC_TYPE(ALLOC, alloc)
REC_TYPE(BLOCK, block)
REC_TYPE(DONE, done)
REC_TYPE(RUN, run)
REC_TYPE(SEND, send)
