"""What goes on from a suspended region, for a driver that is held weakly or not."""

import weakref
from typing import Any

from dynacap.hook.protocol import Finish


def trampoline(driver: Any, weakly: bool) -> Finish:
    """The driver's loop itself; trampoline.c follows known paths without it."""
    if not weakly:
        finish: Finish = driver.finish
        return finish
    method = weakref.WeakMethod(driver.finish)

    def finish_weakly(suspend: Any) -> Any:
        driver_finish = method()
        assert driver_finish is not None, "the driver runs what it answered"
        return driver_finish(suspend)

    return finish_weakly
