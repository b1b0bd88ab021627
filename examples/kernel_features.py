"""A linear classifier on kernel features: landmarks from k-means, and landmarks that are random rows."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from quickmeans import QKNystroem

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

scores = {"no kernel": LinearSVC(max_iter=20_000).fit(X_train / 16, y_train).score(X_test / 16, y_test)}
for landmarks in ("uniform", "qkmeans"):
    features = QKNystroem(gamma="scale", n_components=100, landmarks=landmarks, random_state=0)
    model = make_pipeline(features, LinearSVC()).fit(X_train, y_train)
    scores[landmarks] = model.score(X_test, y_test)
    print(f"{landmarks}: error of the kernel matrix {features.approximation_error(X_test):.4f}")
for name, score in scores.items():
    print(f"{name}: accuracy {score:.3f}")
