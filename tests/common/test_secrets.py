"""Files that look like secrets, and those that only sound like them."""

import pytest

from septet.common.secrets import has_scanner, is_secret_name, mask_secrets, secret_kind, values_of


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "app/.env.production",
        "prod.env",
        ".envrc",
        "certs/server.PEM",
        "deploy.key",
        "store.p12",
        "id_rsa",
        "id_ed25519",
        "keys/id_ecdsa_sk",
        ".netrc",
        ".pypirc",
        ".git-credentials",
        "credentials",
        "credentials.json",
        "client_secret.json",
        "secrets.yaml",
        "my-service-account.json",
        "home/.ssh/known",
        "infra/main.tfstate",
        "infra/main.tfstate.backup",
        "infra/prod.tfvars",
        ".env~",
        "#.env#",
        "server.pem.bak",
        ".docker/config.json",
        ".vault_pass",
        "passwords.txt",
    ],
)
def test_names_of_secrets(path: str) -> None:
    assert is_secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "environment.py",
        "key.py",
        "keys.txt",
        "id_map.py",
        "id_rsa.pub",
        "identity",
        "secrets.py",
        "test_credentials.py",
        "docs/secrets.md",
        "monkey",
        "main.py",
        "secretary.txt",
        "turnkey.json",
        "password_reset.txt",
        "docker/config.json",
        "main.tf",
    ],
)
def test_names_that_only_sound_like_it(path: str) -> None:
    assert not is_secret_name(path)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n",
        'key = "-----BEGIN PRIVATE KEY-----\\nMIIEvgIBADANBg"',
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBGFhYWEBCAC7\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,7F\n\nMIIEpAIBAAKCAQEA7\n",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI7K7MDENG9bPxRfiCYzk2mQw8R1t\n",
        "token = ghp_abcdefghijklmnopqrst0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "key: sk-proj-Ab3dEf6hIj9lMn2pQr5t",
        "a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc b",
    ],
)
def test_texts_that_hold_one(text: str) -> None:
    assert secret_kind(text)


@pytest.mark.parametrize(
    "text",
    [
        'HEAD = "-----BEGIN PRIVATE KEY-----"\nassert HEAD in text\n',
        "pk_users_accounts_table_2 = 1",
        "hf_hub_download(repo_id, filename)",
        "sk-learn-compatible-estimators-v2",
        "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY_OF_THE_ACCOUNT_2']",
        "key = os.environ['OPENAI_API_KEY']",
        "0123456789abcdef" * 4,
    ],
)
def test_texts_that_hold_none(text: str) -> None:
    assert not secret_kind(text)


DATABASE = "DATABASE_URL=postgres://app:Zk9w2hQ1rT@db.internal:5432/shop\n"


@pytest.mark.skipif(not has_scanner(), reason="Kingfisher is not installed: pip install 'septet[secrets]'")
def test_the_rules_of_kingfisher_find_what_our_patterns_do_not() -> None:
    assert secret_kind(DATABASE, "config.py")
    assert not secret_kind(DATABASE, "tests/test_config.py"), "the scanner knows examples by their path"
    assert "Zk9w2hQ1rT" not in mask_secrets(DATABASE)


def test_values_of_a_secret_file_are_masked_and_ordinary_words_stay() -> None:
    values = values_of(b"DEBUG=true\nMODE=development\nPASSWORD='hunter2-and-more'\n")
    assert values == {"hunter2-and-more"}
    said = mask_secrets("development: connecting with hunter2-and-more\n", values)
    assert said == "development: connecting with [secret: of a file that is not shown]\n"


def test_what_the_team_was_told_is_no_secret_in_what_a_program_prints() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc"
    assert mask_secrets(token) == "[secret: access token]"
    assert mask_secrets(token, known=f"prints {token}") == token


def test_a_private_key_is_masked_as_a_whole() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----"
    masked = mask_secrets(f"before\n{key}\nafter")
    assert masked.startswith("before\n[secret: ")
    assert masked.endswith("\nafter")
    assert "kqhki" not in masked
