"""The one error a user sees as one line."""


class UserError(ValueError):
    """Input that cannot be used: says what was expected, what came and where, in one line.

    Binaries print it without a traceback and exit with code 2.
    """
