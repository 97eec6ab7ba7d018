# What experiments share. A Makefile sets OUT, `sweep` (the values of points.yaml's parameters,
# as options of task2graph), `ingredients` (files that make points: tools, inputs), `products`
# (what is made of the points), and includes this.
#
# A point is a file that takes time to make, and a task of points.yaml that makes it; runtasks
# runs them, as many at a time as make may (-j), and goes on where it was stopped, as OUT/log
# has it. On a terminal it says how many have ended and how long the rest takes, by itself; without
# one nothing is said, and nothing of it stands in a product. With ENGINE=slurm all points run in one
# job of Slurm: with as many processors as -j says, without -j in a node of their own, and with
# SLURM_OPTIONS; OUT must be a folder that the node sees, too. The products are the same.
# OUT/tasks.rec are the tasks: with other parameters, a task is another, and is run
# again, or new. With other tools or inputs (OUT/ingredients) all are. What was made of other
# points is removed first; OUT/points.rec says when each was made, and is younger than all.
# Every recipe writes beside its target and renames; a failing stage or an empty product
# leaves nothing.
export PATH := $(abspath $(BIN)):$(PATH)
export LC_ALL := C
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# behind the last stage of a pipeline
kept = >$@.part && test -s $@.part && mv $@.part $@ || { rm -f $@.part; exit 1; }
# makes $@.new the target if it says something else, without $(1)
stamp = if cmp -s $@.new $@; then rm $@.new; else rm -f $(1) $(products) && mv $@.new $@; fi
comma := ,
space := $(subst ,, )
# words -> values of --set
values_of = $(subst $(space),$(comma),$(strip $(subst $(comma),%2C,$(subst %,%25,$(1)))))
# one value, whatever is in it
text_of = '$(subst $(comma),%2C,$(subst %,%25,$(1)))'

.PHONY: all clean always
.DELETE_ON_ERROR:
all:

$(OUT)/ingredients: always
	@mkdir -p $(@D)
	@cksum $(ingredients) $(MAKEFILE_LIST) >$@.new || { rm -f $@.new; exit 1; }
	@$(call stamp,$(OUT)/log $(OUT)/points.rec)

$(OUT)/tasks.rec: points.yaml $(OUT)/ingredients always
	@task2graph --template $< $(sweep) >$@.new || { rm -f $@.new; exit 1; }
	@$(call stamp,$(OUT)/points.rec)

ENGINE ?= local
SLURM_OPTIONS ?=
# make -j4: runtasks -j4; make: one at a time; make -j: as many as there are processors
local = $(filter-out -j,$(or $(filter -j%,$(MAKEFLAGS)),-j1))
slurm = --engine slurm $(filter-out -j,$(filter -j%,$(MAKEFLAGS))) --slurm-options '$(SLURM_OPTIONS)'
$(if $(filter local slurm,$(ENGINE)),,$(error ENGINE must be local or slurm, got '$(ENGINE)'))

$(OUT)/points.rec: $(OUT)/tasks.rec $(OUT)/ingredients
	@runtasks $($(ENGINE)) --resume $(OUT)/log $< $(kept)

clean:
	rm -rf $(OUT)
