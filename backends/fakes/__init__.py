"""Operations run on fake tensors: metadata without memory.

``world`` has the fake mode of one capture and makes fakes of real tensors, ``memo`` keeps what
operations gave.
"""
