"""All entries of the list, and the tables that are left out."""

import experiments
import library
import python_package

ENTRIES = [*library.PIPELINES, *library.LIVE, *library.RAGGED, *experiments.ENCODER, *experiments.AUGMENT, *experiments.GIOU,
           *experiments.RESNET18, *python_package.PYTHON, *python_package.SEVERAL]

# Page, heading and number; `*` is the whole page.
LEFT_OUT = [
    ("README.md", "*", 0),  # repeats the other pages
    ("method.md", "*", 0),  # has none
    ("compile_cost.md", "*", 0),  # of compilers; the test bench.compile_cost counts the functions
    ("live_input.md", "Live input", 0),  # what is asked
    ("live_input.md", "A whole program", 0),  # examples/live with its cameras, run by hand
    ("frozen_encoder.md", "Where the time goes", 0),  # by ncu
    ("frozen_encoder_batches.md", "The frozen encoder on a GPU", 1),  # quotients of the first table, which plot.py writes with it
    ("frozen_encoder_batches.md", "The frozen encoder on a GPU", 2),
    ("gpu_augment.md", "Digits", 0),  # accuracies of 14 seeds
    ("masked_giou.md", "The detector", 1),  # by ncu
    ("resnet18.md", "What there is to beat", 0),  # the article
    ("resnet18.md", "Present state", 1),  # by ncu
    ("resnet18.md", "Present state", 2),  # sentences
    ("resnet18.md", "Present state", 3),  # how far losses are apart, in several runs
    ("resnet18.md", "Right answers", 0),
    ("several_gpus.md", "Right answers", 0),
]
