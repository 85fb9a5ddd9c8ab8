// The two-stream loops of the articles on overlapping training (see examples/frozen_encoder and examples/gpu_augment), with
// the three races of each, on streams by hand and as stages; and done rightly.
#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_articles {

TEST_CASE("Hazard: the frozen encoder's loop on streams: inputs and labels of the default stream, and one "
          "set of each") {
    find({race("images", {"copy"}, {"encode"}), race("labels", {"copy"}, {"train"}),
          race("labels", {"train"}, {"copy"}), race("images", {"encode"}, {"copy"})},
         [](World& w) {
             for (int step = 0; step < 2; ++step) {
                 copy(w.third, w.images, w.host_images);
                 copy(w.third, w.labels, w.host_labels);
                 reads(w.side, w.images, "encode");
                 w.side.wait(w.other_event); // the features are free
                 writes(w.side, w.features, "encode");
                 order(w.side, w.main, w.event);
                 reads(w.main, w.features, "train");
                 reads(w.main, w.labels, "train");
                 w.other_event.record(w.main);
             }
         });
}

TEST_CASE("Hazard: the frozen encoder's loop as stages, with inputs and labels beside the slots") {
    find({race("images", {"copy"}, {"encode", 0}), race("labels", {"copy"}, {"train", 0}),
          race("labels", {"train", 0}, {"copy"}), race("images", {"encode", 0}, {"copy"})},
         [](World& w) {
             TwoStages two{encode().reads(w.images), train().reads(w.labels)};
             for (std::size_t step = 0; step < 2; ++step) {
                 copy(w.third, w.images, w.host_images);
                 copy(w.third, w.labels, w.host_labels);
                 two.submit(step);
             }
         });
}

TEST_CASE("Hazard: augmentation on a stream of its own: no fork, no join, one buffer") {
    find({race("images", {"copy"}, {"augment"}), race("features", {"augment"}, {"train"}),
          race("features", {"train"}, {"augment"}), race("images", {"augment"}, {"copy"})},
         [](World& w) {
             for (int step = 0; step < 2; ++step) {
                 copy(w.main, w.images, w.host_images);
                 reads(w.side, w.images, "augment");
                 writes(w.side, w.features, "augment");
                 reads(w.main, w.features, "train");
             }
         });
}

TEST_CASE("Hazard: augmentation as a stage, from images of another stream into one buffer") {
    find({race("images", {"copy"}, {"encode", 0}), race("features of all", {"train", 0}, {"encode", 1}),
          race("weights", {"train", 0}, {"encode", 1})},
         [](World& w) {
             Device all = named("features of all");
             copy(w.third, w.images, w.host_images);
             TwoStages two{encode().reads(w.images).writes(all).reads(w.weights),
                           train().reads(all).writes(w.weights)};
             two.submit_all(3);
             two.pipeline.finish();
         });
}

TEST_CASE("Right: the frozen encoder's loop on streams") {
    pass([](World& w) {
        for (int step = 0; step < 3; ++step) {
            w.side.wait(w.other_event); // images, labels and features are free
            copy(w.side, w.images, w.host_images);
            copy(w.side, w.labels, w.host_labels);
            reads(w.side, w.images, "encode");
            writes(w.side, w.features, "encode");
            order(w.side, w.main, w.event);
            reads(w.main, w.features, "train");
            reads(w.main, w.labels, "train");
            w.other_event.record(w.main);
        }
    });
}

TEST_CASE("Right: the frozen encoder's loop as stages") {
    pass([](World& w) {
        TwoStages two{encode().reads(w.weights), train().reads(w.labels).writes(w.labels)};
        two.submit_all(6);
        two.pipeline.finish();
    });
}

TEST_CASE("Right: augmentation on a stream of its own") {
    pass([](World& w) {
        Event augmented, copied;
        for (int step = 0; step < 3; ++step) {
            copy(w.main, w.images, w.host_images);
            order(w.main, w.side, copied); // the step before has been trained on, too
            reads(w.side, w.images, "augment");
            writes(w.side, w.features, "augment");
            order(w.side, w.main, augmented);
            reads(w.main, w.features, "train");
        }
    });
}

TEST_CASE("Right: augmentation on a stream of its own, one batch ahead") {
    pass([](World& w) {
        Device* const slots[] = {&w.features, &w.workspace};
        Event augmented[2], trained[2];
        for (int step = 0; step < 5; ++step) {
            const int slot = step % 2;
            w.side.wait(trained[slot]);
            copy(w.side, w.images, w.host_images);
            writes(w.side, *slots[slot], "augment");
            order(w.side, w.main, augmented[slot]);
            reads(w.main, *slots[slot], "train");
            trained[slot].record(w.main);
        }
    });
}

} // namespace sluice::test::hazards_articles
