"""How a reference takes weekdays out of histories: source that forecasting families share.

It defines `past` and `ahead`, days counted from the first coming one; `logs(frame)` and
`weekdays(frame, days)` (n, length); and `profile` with what each weekday has more than the mean, in
logarithms. The date is `feat_0` and the history `feat_1`.
"""

WEEKDAYS = """\
past, ahead = np.arange(-len(train["{feat_1}"].iloc[0]), 0), np.arange(14)

def logs(frame):
    return np.log(np.stack(frame["{feat_1}"]).clip(min=0.1))

def weekdays(frame, days):
    return (pd.to_datetime(frame["{feat_0}"]).dt.day_of_week.to_numpy()[:, None] + days) % 7

# what each weekday has above the mean of its history
above = logs(train) - logs(train).mean(axis=1, keepdims=True)
profile = np.array([above[weekdays(train, past) == k].mean() for k in range(7)])
"""
