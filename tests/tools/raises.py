"""What tests of rampipe_env, rampipe_vector and agents expect of a wrong call."""


def raises(kind, text, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except kind as error:
        assert text in str(error), f"no '{text}' in '{error}'"
        return
    raise AssertionError(f"no {kind.__name__} about '{text}'")
