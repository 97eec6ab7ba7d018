/*
 * flow [FILE [memory]] - the ends of flows that share links: "NAME FINISH", in order of
 * their starts, `inf` for those that stand still; or the peak of its memory, MB. flows.h
 * has the format of the input.
 */
#include "../unit/flows.h"

/* Not ru_maxrss, which may be that of the process that started this one. */
static void
write_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            printf("%.1f\n", strtod(line + 6, NULL) / 1024);
    if (status)
        fclose(status);
}

static void
write_ends(const struct flows *flows)
{
    char text[REC_NUM_MAX];
    for (size_t i = 0; i < flows->nevents; i++)
        if (flows->event[i].weight > 0) {
            rec_format_num(text, flows->event[i].end);
            printf("%s\t%s\n", flows->event[i].name, text);
        }
}

int
main(int argc, char **argv)
{
    struct rec_error err = {.text = ""};
    const char *file[] = {argc > 1 ? argv[1] : "-"};
    struct flows flows = {.nevents = 0};
    bool ok = flows_read(&flows, rec_reader_open(file, 1, NULL, &err), &err) &&
              flows_run(&flows, &err);

    if (!ok)
        fprintf(stderr, "flow: %s\n", err.text);
    else if (argc > 2)
        write_memory();
    else
        write_ends(&flows);
    flows_free(&flows);
    return ok ? 0 : (int)err.code;
}
