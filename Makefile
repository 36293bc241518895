# Two commands for a newcomer: `make demo` and `make test`. Both share one virtual environment.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test check coverage speed clean

demo: $(READY)
	$(BIN)/spatialsim demo

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

coverage: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov

speed: $(READY)
	$(BIN)/python speed/speed.py
	$(BIN)/python speed/training_speed.py
	$(BIN)/python speed/vector_speed.py
	$(BIN)/python speed/agent_speed.py
	$(BIN)/python speed/audit_speed.py
	$(BIN)/python speed/relation_speed.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
