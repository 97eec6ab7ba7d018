/*
 * flow [FILE] - the ends of flows that share links: "NAME FINISH", in order of their
 * starts, `inf` for those that stand still. flows.h has the format of the input.
 */
#include "../unit/flows.h"

int
main(int argc, char **argv)
{
    struct rec_error err = {.text = ""};
    const char *file[] = {argc > 1 ? argv[1] : "-"};
    struct flows flows = {.nevents = 0};
    char text[REC_NUM_MAX];

    if (!flows_read(&flows, rec_reader_open(file, 1, NULL, &err), &err) ||
        !flows_run(&flows, &err)) {
        fprintf(stderr, "flow: %s\n", err.text);
        return err.code;
    }
    for (size_t i = 0; i < flows.nevents; i++)
        if (flows.event[i].weight > 0) {
            rec_format_num(text, flows.event[i].end);
            printf("%s\t%s\n", flows.event[i].name, text);
        }
    flows_free(&flows);
    return 0;
}
