/// \file
/// Whether what captured stages read on the host is as it was: `Guard.holds` of python/sluice/pipelines/guards.py, without Python code.
#pragma once

#include <vector>

#include "words.hpp"

namespace sluice_flow {

constexpr int equal = 2; // Py_EQ

inline bool is_equal(PyObject* first, PyObject* second) {
    if (first == second)
        return true;
    const int found = PyObject_RichCompareBool(first, second, equal);
    check(found);
    return found == 1;
}

/// Modes of PyTorch now; see `surroundings` in guards.py.
class Modes {
public:
    Modes() {
        PyObject* const functions = words[Word::modes];
        found_.reserve(static_cast<std::size_t>(size(functions)) + 3);
        for (std::intptr_t i = 0; i < size(functions); ++i)
            found_.push_back(called(item(functions, i)));
        PyObject* const autocast =
            words[Word::autocast]; // whether any is on, one is, its type, and kinds of devices
        const bool is_any_on = is_true(called(item(autocast, 0)));
        for (std::intptr_t i = 3; i < size(autocast); ++i) {
            const bool is_on = is_any_on && is_true(Ref::taken(PyObject_CallFunctionObjArgs(
                                                item(autocast, 1), item(autocast, i), nullptr)));
            found_.push_back(is_on ? Ref::taken(PyObject_CallFunctionObjArgs(item(autocast, 2),
                                                                             item(autocast, i), nullptr))
                                   : Ref::another(words[Word::none]));
        }
        PyObject* const around =
            words[Word::around]; // how many functions' and operations' modes are on, and which
        const bool is_alone =
            number(called(item(around, 0)).get()) == 0 && number(called(item(around, 1)).get()) == 0;
        found_.push_back(is_alone ? Ref::another(words[Word::none]) : called(item(around, 2)));
    }

    bool are(PyObject* expected) const {
        if (size(expected) != static_cast<std::intptr_t>(found_.size()))
            return false;
        for (std::size_t i = 0; i < found_.size(); ++i)
            if (!is_equal(found_[i].get(), item(expected, static_cast<std::intptr_t>(i))))
                return false;
        return true;
    }

private:
    static Ref called(PyObject* function) { return Ref::taken(PyObject_CallNoArgs(function)); }

    std::vector<Ref> found_;
};

/// A guard's lists, which are read where they are: a guard that takes note of a change is asked in its new state.
struct Guard {
    enum {
        containers,
        keys,
        items,
        objects,
        attributes,
        values,
        whole,
        whole_items,
        empty,
        sized,
        sizes,
        tensors,
        addresses,
        lists,
        sets,
        surroundings,
        check,
        looked_at,
        of_kind,
        kinds
    };
    PyObject* tuple;

    PyObject* list(int place) const { return item(tuple, place); }

    bool holds(const Modes& modes) const {
        try {
            return sizes_hold() && items_hold() && whole_hold() && tensors_hold() && lists_hold() &&
                   modes.are(list(surroundings));
        } catch (Raised) { // what was read is not there any more
            PyErr_Clear();
            return false;
        }
    }

private:
    bool sizes_hold() const {
        for (std::intptr_t i = 0; i < size(list(sized)); ++i)
            if (PyObject_Size(item(list(sized), i)) != number(item(list(sizes), i)))
                return false;
        for (std::intptr_t i = 0; i < size(list(empty)); ++i)
            if (PyObject_IsTrue(item(list(empty), i)) != 0)
                return false;
        return true;
    }

    bool items_hold() const {
        for (std::intptr_t i = 0; i < size(list(containers)); ++i)
            if (Ref::taken(PyObject_GetItem(item(list(containers), i), item(list(keys), i))).get() !=
                item(list(items), i))
                return false;
        for (std::intptr_t i = 0; i < size(list(objects)); ++i)
            if (Ref::taken(PyObject_GetAttr(item(list(objects), i), item(list(attributes), i))).get() !=
                item(list(values), i))
                return false;
        for (std::intptr_t i = 0; i < size(list(of_kind)); ++i)
            if (item(list(of_kind), i)->type != item(list(kinds), i))
                return false;
        return true;
    }

    bool whole_hold() const {
        std::intptr_t known = 0;
        for (std::intptr_t i = 0; i < size(list(whole)); ++i) {
            PyObject *key = nullptr, *value = nullptr;
            std::intptr_t place = 0;
            while (PyDict_Next(item(list(whole), i), &place, &key, &value) != 0)
                if (known == size(list(whole_items)) || value != item(list(whole_items), known++))
                    return false;
        }
        return known == size(list(whole_items));
    }

    bool tensors_hold() const {
        for (std::intptr_t i = 0; i < size(list(tensors)); ++i) {
            const Ref now = Ref::taken(
                PyObject_CallFunctionObjArgs(words[Word::address], item(list(tensors), i), nullptr));
            if (PyLong_AsVoidPtr(now.get()) != PyLong_AsVoidPtr(item(list(addresses), i)))
                return false;
        }
        return looks_hold();
    }

    bool looks_hold() const {
        return size(list(looked_at)) == 0 ||
               is_true(Ref::taken(PyObject_Call(list(check), list(looked_at), nullptr)));
    }

    bool lists_hold() const {
        for (std::intptr_t i = 0; i < size(list(lists)); ++i) {
            PyObject* const now = item(item(list(lists), i), 0);
            PyObject* const members = item(item(list(lists), i), 2);
            if (PyList_Size(now) != size(members))
                return false;
            for (std::intptr_t place = 0; place < size(members); ++place)
                if (PyList_GetItem(now, place) != item(members, place))
                    return false;
        }
        for (std::intptr_t i = 0; i < size(list(sets)); ++i)
            if (!is_equal(item(item(list(sets), i), 0), item(item(list(sets), i), 1)))
                return false;
        return true;
    }
};

} // namespace sluice_flow
