/* ledger.h -- every charge and recharge of a user, for the pages and as a table. */
#ifndef APP_ACCOUNT_LEDGER_H
#define APP_ACCOUNT_LEDGER_H

#include "engine/api/api.h"

api_handler account_ledger;
api_handler account_ledger_csv;
extern const struct api_field account_ledger_query[];
extern const struct api_field account_ledger_reply[];
#endif
