"""What to import beforehand."""

def profile(name):
    return ("numpy", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline", "sklearn.compose", "sklearn.impute", "sklearn.preprocessing")
